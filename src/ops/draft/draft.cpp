// Records the start of drafting and the taking of a draft.
#include "ops/draft/draft.h"

#include "base/error.h"

namespace tandem::ops {
namespace {

Result<void> check_steps(uint32_t drafts, gpu::View step, gpu::View draft_steps) {
  if (drafts == 0) return fail(ErrorCode::internal, "draft: a round has no draft to take");
  TRY(check_size("draft", "step", step, sizeof(Step)));
  return check_size("draft", "draft_steps", draft_steps, uint64_t{drafts} * draft_step_bytes);
}

}  // namespace

Result<void> record(gpu::CommandList& commands, const DraftSteps& op) {
  TRY(check_steps(op.drafts, op.step, op.draft_steps));
  return dispatch(
      commands,
      {"draft_steps", {{"DRAFTS", double(op.drafts)}, {"CONTEXT", double(op.context)}}, {}},
      {gpu::read_write(op.step), gpu::read_write(op.draft_steps)});
}

Result<void> record(gpu::CommandList& commands, const Draft& op) {
  TRY(check_steps(op.drafts, op.step, op.draft_steps));
  if (op.index >= op.drafts) {
    return fail(ErrorCode::internal, "draft: there is no draft {} of {}", op.index, op.drafts);
  }
  const uint64_t timeline_bytes = (uint64_t{op.context} + 1) * sizeof(uint32_t);
  TRY(check_size("draft", "token", op.token, sizeof(uint32_t)));
  TRY(check_size("draft", "stop_ids", op.stop_ids, sizeof(uint32_t)));
  TRY(check_size("draft", "timeline", op.timeline, timeline_bytes));
  if (op.script) TRY(check_size("draft", "script", op.script, timeline_bytes));
  return dispatch(commands,
                  {"draft",
                   {{"DRAFTS", double(op.drafts)},
                    {"INDEX", double(op.index)},
                    {"CONTEXT", double(op.context)},
                    {"SCRIPTED", op.script ? 1.0 : 0.0}},
                   {}},
                  {gpu::read_write(op.step), gpu::read_write(op.draft_steps), gpu::read(op.token),
                   gpu::read(op.script ? op.script : op.token), gpu::read(op.stop_ids),
                   gpu::read_write(op.timeline)});
}

}  // namespace tandem::ops
