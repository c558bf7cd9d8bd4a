// Records the end of a round.
#include "ops/accept/accept.h"

#include "base/error.h"

namespace tandem::ops {

Result<void> record(gpu::CommandList& commands, const Accept& op) {
  if (op.drafts > max_drafts) {
    return fail(ErrorCode::unsupported, "accept: a round has at most {} drafts, not {}", max_drafts,
                op.drafts);
  }
  TRY(check_size("accept", "step", op.step, sizeof(Step)));
  TRY(check_size("accept", "targets", op.targets, (op.drafts + 1) * sizeof(uint32_t)));
  TRY(check_size("accept", "logits", op.logits,
                 (op.drafts + 1) * uint64_t{op.columns} * sizeof(float)));
  TRY(check_size("accept", "stop_ids", op.stop_ids, sizeof(uint32_t)));
  TRY(check_size("accept", "timeline", op.timeline, (uint64_t{op.context} + 1) * sizeof(uint32_t)));
  TRY(check_size("accept", "record", op.record, sizeof(RoundRecord)));
  return dispatch(
      commands,
      {"accept",
       {{"CONTEXT", double(op.context)},
        {"DRAFTS", double(op.drafts)},
        {"COLUMNS", double(op.columns)}},
       {},
       // The step in and out, and the record.
       gpu::Traffic{.fixed = 2 * sizeof(Step) + sizeof(RoundRecord)}},
      {gpu::read_write(op.step), gpu::read(op.targets), gpu::read(op.logits),
       gpu::read(op.stop_ids), gpu::read_write(op.timeline), gpu::read_write(op.record)});
}

}  // namespace tandem::ops
