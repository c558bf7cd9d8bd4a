// Ends a round: accepts the drafts that the target agrees with, appends what the target chose to
// the timeline, and moves the step on. Row r of the round ran timeline[position + r]; rows after
// the first are drafts. targets[r] is the token that the target puts after row r.
//   accepted = the most drafts such that timeline[position + 1 + i] == targets[i] for i < accepted
//   timeline[position + 1 + i] = targets[i] for i <= accepted, up to the first stop id
// With the count of tokens so emitted: position += count; remaining -= count; rounds += 1;
// step.token = the last of them; step.accepted = accepted. Then, in this order: a stop id stops
// (StopCode::stop_id), remaining 0 stops (length), and position == context stops (context: that
// token has no slot left to be run in). The step then has 1 row, none once stopped; the next
// round's drafts add to it. A step of 0 rows stays as it is.
//
// Plain decoding is a round without drafts.
#pragma once

#include <array>

#include "ops/op.h"

namespace tandem::ops {

inline constexpr uint32_t max_drafts = 3;

// What a round did, for the host. Of the arrays, drafts[0 .. rows - 2], targets[0 .. rows - 1] and
// logits[0 .. rows - 1] count; the others are 0.
struct RoundRecord {
  uint32_t number = 0;    // of the round since the step was written, from 1 on
  uint32_t position = 0;  // of row 0
  uint32_t rows = 0;
  uint32_t count = 0;     // tokens emitted: targets[0 .. count - 1]
  uint32_t accepted = 0;  // count - 1, but for a stop id among the accepted
  StopCode stop = StopCode::none;
  std::array<uint32_t, max_drafts> drafts = {};
  std::array<uint32_t, max_drafts + 1> targets = {};
  std::array<float, max_drafts + 1> logits = {};  // of the targets: not finite if the row is not

  std::span<const uint32_t> tokens() const { return std::span(targets).first(count); }
  bool operator==(const RoundRecord&) const = default;
};
static_assert(sizeof(RoundRecord) == 68);

struct Accept {
  uint32_t context = 0;  // positions 0 .. context - 1 can be run
  uint32_t drafts = 0;   // that a round verifies at most
  uint32_t columns = 0;  // of the logits
  gpu::View step;        // read and written; remaining > 0 unless rows is 0
  gpu::View targets;     // u32 [drafts + 1]
  gpu::View logits;      // [drafts + 1][columns], that the targets were chosen from
  gpu::View stop_ids;    // u32: a count, then the ids
  gpu::View timeline;    // u32 [context + 1], read and written
  gpu::View record;      // a RoundRecord
};

Result<void> record(gpu::CommandList& commands, const Accept& op);

struct Accepted {
  Step step;
  RoundRecord record;  // empty for a step of 0 rows
};
// logits: [targets.size()][columns].
Accepted accept_reference(const Step& step, uint32_t context, uint32_t drafts,
                          std::span<const uint32_t> targets, std::span<const float> logits,
                          std::span<const uint32_t> stop_ids, std::span<uint32_t> timeline);

// How many leading drafts equal the target at their place: what a record's `accepted` must be.
uint32_t accepted_drafts(const RoundRecord& record);

}  // namespace tandem::ops
