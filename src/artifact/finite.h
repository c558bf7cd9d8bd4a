// Weights and scales are finite numbers.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "artifact/load_plan.h"
#include "tandem/error.h"

namespace tandem::artifact {

// Refuses an infinity or a NaN in the segments of a piece, whose bytes these are. `file` names its
// shard in the message.
Result<void> check_finite(const Piece& piece, std::span<const std::byte> bytes,
                          std::string_view file);

}  // namespace tandem::artifact
