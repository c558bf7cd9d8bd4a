// The end of a round on the host.
#include <algorithm>

#include "ops/accept/accept.h"

namespace tandem::ops {

uint32_t accepted_drafts(const RoundRecord& record) {
  uint32_t accepted = 0;
  while (accepted + 1 < record.rows && record.drafts[accepted] == record.targets[accepted]) {
    ++accepted;
  }
  return accepted;
}

Accepted accept_reference(const Step& step, uint32_t context, uint32_t drafts,
                          std::span<const uint32_t> targets, std::span<const float> logits,
                          std::span<const uint32_t> stop_ids, std::span<uint32_t> timeline) {
  if (step.rows == 0) return {step, {}};
  const size_t columns = logits.size() / targets.size();
  const auto emitted = timeline.subspan(step.position + 1);
  RoundRecord record = {
      .number = step.rounds + 1,
      .position = step.position,
      .rows = std::min({step.rows, drafts + 1, step.remaining, context - step.position})};
  for (uint32_t i = 0; i < record.rows; ++i) {
    record.targets[i] = targets[i];
    record.logits[i] = logits[i * columns + targets[i]];
    if (i + 1 < record.rows) record.drafts[i] = emitted[i];
  }
  record.accepted = accepted_drafts(record);

  Step next = step;
  StopCode stop = StopCode::none;
  while (record.count <= record.accepted && stop == StopCode::none) {
    next.token = record.targets[record.count];
    emitted[record.count++] = next.token;
    const bool stops = std::find(stop_ids.begin(), stop_ids.end(), next.token) != stop_ids.end();
    if (stops) stop = StopCode::stop_id;
  }
  next.position += record.count;
  next.remaining -= record.count;
  next.rounds += 1;
  next.accepted = record.accepted;
  if (stop == StopCode::none && next.remaining == 0) stop = StopCode::length;
  if (stop == StopCode::none && next.position == context) stop = StopCode::context;
  next.rows = stop == StopCode::none ? 1 : 0;
  next.stop = static_cast<uint32_t>(stop);
  record.stop = stop;
  return {next, record};
}

}  // namespace tandem::ops
