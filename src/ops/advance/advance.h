// Ends a round of one row: appends the chosen token to the timeline and moves the step on.
//   timeline[position + 1] = token; position += 1; remaining -= 1; rounds += 1; step.token = token
// then, in this order: a stop id stops (StopCode::stop_id), remaining 0 stops (length), and
// position == context stops (context: that token has no slot left to be run in). A stopped step has
// rows = 0. A step of 0 rows stays as it is.
#pragma once

#include "ops/op.h"

namespace tandem::ops {

struct Advance {
  uint32_t context = 0;  // positions 0 .. context - 1 can be run
  gpu::View step;        // read and written
  gpu::View token;       // u32 [1]
  gpu::View stop_ids;    // u32: a count, then the ids
  gpu::View timeline;    // u32 [context + 1]
};

Result<void> record(gpu::CommandList& commands, const Advance& op);

Step advance_reference(const Step& step, uint32_t token, uint32_t context,
                       std::span<const uint32_t> stop_ids, std::span<uint32_t> timeline);

}  // namespace tandem::ops
