// What a checkpoint's generation_config.json says of its answers: how they are sampled, and the ids
// that end them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "tandem/sampling.h"

namespace tandem::text {

struct GenerationConfig {
  // eos_token_id, a number or a list of ids below the vocabulary: sorted, without repetition.
  std::vector<uint32_t> stop_ids;
  // Greedy unless do_sample is true. A key that is missing or null is off, but for two that
  // transformers sets itself where do_sample is true: temperature 1 and top_k 50.
  SampleOptions sampling;
  std::vector<std::string> ignored;  // keys that mean nothing to Tandem, sorted
};

// Refuses more stop ids than a generation takes.
Result<void> check_stop_ids(std::span<const uint32_t> ids, std::string_view where);

// eos_token_id must be there, and options of sampling must be such that the engine takes them;
// other keys, of which real files have some, are named in `ignored`. `where` names the file in
// messages.
Result<GenerationConfig> read_generation_config(std::string_view json, std::string_view where,
                                                uint32_t vocabulary);

}  // namespace tandem::text
