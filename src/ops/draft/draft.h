// The drafts of a round.
//
// `DraftSteps` begins the drafting: the step gets a row to verify the newest token's successor, and
// one for each draft, as far as tokens and positions remain,
//   step.rows = min(drafts + 1, remaining, context - position), but 0 stays 0
// and step k of `draft_steps` is the row that draft k follows,
//   {position + k, rows: 1 if step.rows > k + 1, else 0}
// A draft that has no row to verify it is not computed.
//
// `Draft` takes draft k when it has been chosen: timeline[position + 1 + k] = token. A script may
// replace it by its position. A stop id ends the drafts: nothing that follows it can be emitted, so
// its row becomes the round's last (step.rows = k + 2), and later draft steps have 0 rows.
#pragma once

#include "ops/op.h"

namespace tandem::ops {

// Steps lie as far apart as bindings must.
inline constexpr uint32_t draft_step_bytes = 256;
// In a script: the draft stays as it is.
inline constexpr uint32_t unscripted = 0xffffffff;

struct DraftSteps {
  uint32_t drafts = 0;    // at least 1
  uint32_t context = 0;   // no row's position reaches it
  gpu::View step;         // of the round, read and written
  gpu::View draft_steps;  // Step [drafts], each in draft_step_bytes; written
};

struct Draft {
  uint32_t drafts = 0;
  uint32_t index = 0;     // k
  uint32_t context = 0;   // no row's position reaches it
  gpu::View step;         // of the round, read and written
  gpu::View draft_steps;  // read and written
  gpu::View token;        // u32 [1]
  gpu::View script;       // u32 [context + 1], by position, or none
  gpu::View stop_ids;     // u32: a count, then the ids
  gpu::View timeline;     // u32 [context + 1], written
};

Result<void> record(gpu::CommandList& commands, const DraftSteps& op);
Result<void> record(gpu::CommandList& commands, const Draft& op);

// draft_steps: [drafts], dense.
void draft_steps_reference(uint32_t context, Step& step, std::span<Step> draft_steps);
// `script` may be empty.
void draft_reference(uint32_t index, uint32_t token, std::span<const uint32_t> script,
                     std::span<const uint32_t> stop_ids, Step& step, std::span<Step> draft_steps,
                     std::span<uint32_t> timeline);

}  // namespace tandem::ops
