// The ids that end an answer, from a checkpoint's generation_config.json.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace tandem::text {

// eos_token_id, a number or a list of ids below `vocabulary`, sorted and without repetition. It
// must be there; other keys are not looked at. `where` names the file in messages.
Result<std::vector<uint32_t>> stop_ids(std::string_view generation_config_json,
                                       std::string_view where, uint32_t vocabulary);

}  // namespace tandem::text
