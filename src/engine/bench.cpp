#include "engine/bench.h"

#include <algorithm>
#include <random>

#include "ops/draft/draft.h"

namespace tandem::engine {

Spread spread(std::span<const double> samples) {
  std::vector<double> sorted(samples.begin(), samples.end());
  std::sort(sorted.begin(), sorted.end());
  const size_t middle = sorted.size() / 2;
  const double median =
      sorted.size() % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
  return {median, sorted.front(), sorted.back()};
}

PromptLengths prompts_in_context(std::span<const uint32_t> lengths, uint32_t tokens,
                                 uint32_t context) {
  PromptLengths prompts;
  for (const uint32_t length : lengths) {
    const bool fits = uint64_t{length} + tokens <= context;
    (fits ? prompts.fitting : prompts.too_long).push_back(length);
  }
  return prompts;
}

std::vector<uint32_t> ordinary_tokens(uint32_t vocabulary, uint32_t count) {
  const uint32_t first = vocabulary / 8;
  const uint32_t range = std::max(1u, vocabulary - 2 * first);
  std::mt19937 random(1);  // the standard fixes its sequence
  std::vector<uint32_t> ids(count);
  for (uint32_t& id : ids) id = first + static_cast<uint32_t>(random()) % range;
  return ids;
}

std::vector<uint32_t> forced_drafts(uint32_t prompt_tokens, std::span<const uint32_t> ids,
                                    uint32_t tokens_per_round, uint32_t vocabulary) {
  std::vector<uint32_t> drafts(prompt_tokens, ops::unscripted);
  for (size_t i = 0; i < ids.size(); ++i) {
    const bool accepted = i % tokens_per_round != 0;
    drafts.push_back(accepted ? ids[i] : (ids[i] + 1) % vocabulary);
  }
  return drafts;
}

}  // namespace tandem::engine
