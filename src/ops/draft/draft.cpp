// Records what drafts begin with, and the taking of a draft.
#include "ops/draft/draft.h"

#include "base/error.h"

namespace tandem::ops {
namespace {

Result<void> check_steps(uint32_t drafts, gpu::View step, gpu::View draft_steps) {
  if (drafts == 0) return fail(ErrorCode::internal, "draft: a round has no draft to take");
  TRY(check_size("draft", "step", step, sizeof(Step)));
  return check_size("draft", "draft_steps", draft_steps, uint64_t{drafts} * draft_step_bytes);
}

uint64_t timeline_bytes(uint32_t context) { return (uint64_t{context} + 1) * sizeof(uint32_t); }

}  // namespace

Result<void> record(gpu::CommandList& commands, const DraftInput& op) {
  constexpr std::string_view kernel = "draft_input";
  const auto& [type, vocabulary, columns, parts] = op.table;
  const std::vector<spec::PlaneLayout> planes = spec::planes(type, columns);
  if (planes.empty() || columns % 4 != 0 ||
      (op.x_format != RowFormat::columns && !has_units(columns))) {
    return fail(ErrorCode::internal, "{}: no kernel for {} columns of a {} table{}", kernel,
                columns, spec::name(type),
                op.x_format != RowFormat::columns ? " and rows of units" : "");
  }
  const uint64_t row = uint64_t{columns} * sizeof(float);
  uint64_t table_row = 0;
  for (const spec::PlaneLayout& plane : planes) table_row += plane.bytes_per_row;
  TRY(check_steps(op.drafts, op.step, op.draft_steps));
  TRY(gpu::check_indexable(uint64_t{op.max_rows} * columns));
  TRY(check_size(kernel, "timeline", op.timeline, timeline_bytes(op.context)));
  TRY(check_size(kernel, "x", op.x, op.max_rows * row));
  TRY(check_size(kernel, "y", op.y, 2 * row));
  for (const MatrixPart& part : parts) {
    TRY(gpu::check_indexable(uint64_t{part.rows} * columns));
    TRY(check_size(kernel, "table", part.values, part.rows * planes[0].bytes_per_row));
    if (planes.size() > 1) {
      TRY(check_size(kernel, "scales", part.scales, part.rows * planes[1].bytes_per_row));
    }
    TRY(dispatch(
        commands,
        {kernel,
         {{"TYPE", double(type)},
          {"FIRST_ROW", double(part.first_row)},
          {"ROWS", double(part.rows)},
          {"COLUMNS", double(columns)},
          {"SCALE", op.scale},
          {"DRAFTS", double(op.drafts)},
          {"CONTEXT", double(op.context)},
          {"MAX_ROWS", double(op.max_rows)},
          {"X_FORMAT", double(op.x_format)}},
         {},
         // A row of the table and of x, and y; all in the first part, whoever owns the token.
         gpu::Traffic{.fixed = part.first_row == 0 ? table_row + 3 * row : 0}},
        {gpu::uniform(op.step), gpu::read(part.values), gpu::read(part.bound_scales()),
         gpu::read(op.timeline), gpu::read(op.x), gpu::read_write(op.y),
         gpu::read_write(op.draft_steps)}));
  }
  return {};
}

Result<void> record(gpu::CommandList& commands, const Draft& op) {
  TRY(check_steps(op.drafts, op.step, op.draft_steps));
  if (op.index >= op.drafts) {
    return fail(ErrorCode::internal, "draft: there is no draft {} of {}", op.index, op.drafts);
  }
  if (op.scored == 0 || (op.scored > 1 && !op.scores)) {
    return fail(ErrorCode::internal, "draft: cannot choose among {} tokens without their scores",
                op.scored);
  }
  TRY(check_size("draft", "tokens", op.tokens, uint64_t{op.scored} * sizeof(uint32_t)));
  if (op.scores) {
    TRY(check_size("draft", "scores", op.scores, uint64_t{op.scored} * sizeof(float)));
  }
  TRY(check_size("draft", "stop_ids", op.stop_ids, sizeof(uint32_t)));
  TRY(check_size("draft", "timeline", op.timeline, timeline_bytes(op.context)));
  if (op.script) TRY(check_size("draft", "script", op.script, timeline_bytes(op.context)));
  return dispatch(
      commands,
      {"draft",
       {{"DRAFTS", double(op.drafts)},
        {"INDEX", double(op.index)},
        {"CONTEXT", double(op.context)},
        {"SCORED", double(op.scored)},
        {"SCRIPTED", op.script ? 1.0 : 0.0}},
       {},
       gpu::Traffic{.fixed = op.scored * (sizeof(uint32_t) + sizeof(float))}},
      {gpu::read_write(op.step), gpu::read_write(op.draft_steps), gpu::read(op.tokens),
       gpu::read(op.scores ? op.scores : op.tokens), gpu::read(op.script ? op.script : op.tokens),
       gpu::read(op.stop_ids), gpu::read_write(op.timeline)});
}

}  // namespace tandem::ops
