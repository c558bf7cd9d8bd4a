// Drafting on the host.
#include <algorithm>

#include "ops/argmax/argmax.h"
#include "ops/draft/draft.h"

namespace tandem::ops {

void draft_steps_reference(uint32_t context, const Step& step, std::span<Step> draft_steps) {
  const uint32_t most = static_cast<uint32_t>(draft_steps.size()) + 1;
  const uint32_t rows = std::min({most, step.remaining, context - step.position});
  for (uint32_t k = 0; k < draft_steps.size(); ++k) {
    draft_steps[k] = step;
    draft_steps[k].position += k;
    draft_steps[k].rows = step.rows > 0 && rows > k + 1 ? 1 : 0;
  }
}

void draft_reference(uint32_t index, std::span<const uint32_t> tokens,
                     std::span<const float> scores, std::span<const uint32_t> script,
                     std::span<const uint32_t> stop_ids, Step& step, std::span<Step> draft_steps,
                     std::span<uint32_t> timeline) {
  if (draft_steps[index].rows == 0) return;
  uint32_t token = tokens[0];
  if (!scores.empty()) {
    argmax_reference(static_cast<uint32_t>(scores.size()), scores, std::span(&token, 1), tokens);
  }
  if (index == 0) {
    step.rows = 1;
    for (const Step& draft : draft_steps) step.rows += draft.rows;
  }
  const uint32_t position = step.position + 1 + index;
  const bool scripted = !script.empty() && script[position] != unscripted;
  timeline[position] = scripted ? script[position] : token;
  if (std::find(stop_ids.begin(), stop_ids.end(), timeline[position]) == stop_ids.end()) return;
  step.rows = index + 2;
  for (Step& later : draft_steps.subspan(index + 1)) later.rows = 0;
}

}  // namespace tandem::ops
