// Records the end of a round.
#include "ops/advance/advance.h"

#include "base/error.h"

namespace tandem::ops {

Result<void> record(gpu::CommandList& commands, const Advance& op) {
  TRY(check_size("advance", "token", op.token, sizeof(uint32_t)));
  TRY(check_size("advance", "stop_ids", op.stop_ids, sizeof(uint32_t)));
  TRY(check_size("advance", "timeline", op.timeline,
                 (uint64_t{op.context} + 1) * sizeof(uint32_t)));
  return dispatch(commands, {"advance", {{"CONTEXT", double(op.context)}}, {}},
                  {gpu::read_write(op.step), gpu::read(op.token), gpu::read(op.stop_ids),
                   gpu::read_write(op.timeline)});
}

}  // namespace tandem::ops
