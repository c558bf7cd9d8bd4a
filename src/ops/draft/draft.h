// The drafts of a round.
//
// `DraftInput` ends a round of any kind with what the drafts of the next one begin with: the
// embedding of the newest token beside the hidden state of the row that it was chosen from,
//   y = [scale * table[timeline[position]], x[step.accepted]]
// and a step for each draft: step k of `draft_steps` is the row that draft k follows,
//   {position + k, rows: 1 if min(drafts + 1, remaining, context - position) > k + 1, else 0}
// A draft that has no row to verify it is not computed, nor any after a stop.
//
// `Draft` takes draft k: timeline[position + 1 + k] = the token of the largest score, the lowest of
// equals. One that was chosen before is the only one. A script may replace it by its position. The
// first draft gives the round a row for itself and each draft. A stop id ends the drafts: nothing
// that follows it can be emitted, so its row becomes the round's last (step.rows = k + 2), and
// later draft steps have 0 rows.
#pragma once

#include "ops/op.h"

namespace tandem::ops {

// Steps lie as far apart as bindings must.
inline constexpr uint32_t draft_step_bytes = 256;
// In a script: the draft stays as it is.
inline constexpr uint32_t unscripted = 0xffffffff;

struct DraftInput {
  uint32_t drafts = 0;   // at least 1
  uint32_t context = 0;  // no row's position reaches it
  Matrix table;          // [vocabulary, columns]: one dispatch per part
  float scale = 1;       // of the embedding
  gpu::View step;        // of the round that comes
  gpu::View timeline;    // u32 [context + 1]
  gpu::View x;           // [max_rows][columns]
  RowFormat x_format = RowFormat::columns;
  gpu::View y;            // [2 * columns]
  gpu::View draft_steps;  // Step [drafts], each in draft_step_bytes; written
  uint32_t max_rows = 0;
};

struct Draft {
  uint32_t drafts = 0;
  uint32_t index = 0;     // k
  uint32_t context = 0;   // no row's position reaches it
  gpu::View step;         // of the round, read and written
  gpu::View draft_steps;  // read and written
  uint32_t scored = 1;    // tokens
  gpu::View tokens;       // u32 [scored]
  gpu::View scores;       // [scored], finite; none for a single token
  gpu::View script;       // u32 [context + 1], by position, or none
  gpu::View stop_ids;     // u32: a count, then the ids
  gpu::View timeline;     // u32 [context + 1], written
};

Result<void> record(gpu::CommandList& commands, const DraftInput& op);
Result<void> record(gpu::CommandList& commands, const Draft& op);

// draft_steps: [drafts], dense.
void draft_steps_reference(uint32_t context, const Step& step, std::span<Step> draft_steps);
// `scores` may be empty for a single token, and `script` may be.
void draft_reference(uint32_t index, std::span<const uint32_t> tokens,
                     std::span<const float> scores, std::span<const uint32_t> script,
                     std::span<const uint32_t> stop_ids, Step& step, std::span<Step> draft_steps,
                     std::span<uint32_t> timeline);

}  // namespace tandem::ops
