// How a token is chosen from its logits. docs/operators.md says what each option does, and in which
// order.
#pragma once

#include <cstdint>

#pragma GCC visibility push(default)
namespace tandem {

// The same options, seed, tokens before it and logits give the same token, always.
struct SampleOptions {
  float temperature = 1;         // 0: greedy; else 1e-6 to 1e6
  uint32_t top_k = 0;            // keeps the k most likely tokens; 0: off
  float top_p = 1;               // keeps the most likely tokens of this share; 1: off
  float min_p = 0;               // keeps tokens of at least this part of the largest; 0: off
  float repetition_penalty = 1;  // 1e-6 to 1e6; 1: off
  uint32_t penalty_window = UINT32_MAX;  // how many of the last tokens it looks at
  uint64_t seed = 0;
};

// Added to a token's logit; -1e9 bans the token.
struct TokenBias {
  uint32_t token = 0;
  float bias = 0;  // within +-1e20
};
inline constexpr uint32_t max_biases = 1024;  // of one generation

}  // namespace tandem
#pragma GCC visibility pop
