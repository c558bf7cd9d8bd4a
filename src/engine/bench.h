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

// Drafts by position, of which every round accepts so many that it emits `tokens_per_round` tokens,
// where a model puts `ids` after a prompt: the ids themselves, and at the first place that a round
// is to reject another token. Positions of the prompt and of the first id are not drafted.
std::vector<uint32_t> forced_drafts(uint32_t prompt_tokens, std::span<const uint32_t> ids,
                                    uint32_t tokens_per_round, uint32_t vocabulary);

}  // namespace tandem::engine
