// The geometries that `tandem synthesize` knows by name.
#pragma once

#include <string>
#include <string_view>

#include "spec/config.h"

namespace tandem::exporter {

// "e2b, e4b, atlas"
std::string geometry_names();

// Refuses another name.
Result<spec::Config> geometry(std::string_view name);
// Of the assistant that is made for it.
Result<spec::AssistantConfig> assistant_geometry(std::string_view name);

}  // namespace tandem::exporter
