// The pure parts of a measurement: what to run, on which tokens, and what the samples say.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tandem::engine {

struct Spread {
  double median = 0;  // of an even number the mean of the middle two
  double min = 0;
  double max = 0;
};

// Of at least one sample.
Spread spread(std::span<const double> samples);

struct PromptLengths {
  std::vector<uint32_t> fitting;
  std::vector<uint32_t> too_long;
};

// Which prompts leave room for `tokens` more positions in a context. Keeps the order.
PromptLengths prompts_in_context(std::span<const uint32_t> lengths, uint32_t tokens,
                                 uint32_t context);

// The same pseudo-random ids for the same arguments, from the middle three quarters of the
// vocabulary: control tokens lie at its ends.
std::vector<uint32_t> ordinary_tokens(uint32_t vocabulary, uint32_t count);

}  // namespace tandem::engine
