// What commands say of an artifact's provenance.
#pragma once

#include <string>

#include "artifact/provenance.h"
#include "base/json.h"

namespace tandem::cli {

// "provenance    verified ...", a line for each pin that matched or each reason why none did.
std::string describe(const artifact::Provenance& provenance);

Json to_json(const artifact::Provenance& provenance);

}  // namespace tandem::cli
