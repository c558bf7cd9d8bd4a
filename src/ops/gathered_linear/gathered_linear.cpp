// Route and recording of the gathered product.
#include "ops/gathered_linear/gathered_linear.h"

#include "base/error.h"

namespace tandem::ops {
namespace {

constexpr uint32_t workgroup = 64;

Result<void> check(const GatheredLinear& op) {
  const Matrix& weights = op.weights;
  const std::vector<spec::PlaneLayout> planes = spec::planes(weights.type, weights.columns);
  if (planes.empty() || weights.columns % 4 != 0) {
    return fail(ErrorCode::internal, "gathered_linear: no kernel for {} weights of {} columns",
                spec::name(weights.type), weights.columns);
  }
  if (op.groups == 0 || op.group_rows == 0 || op.count == 0 || op.count > op.groups) {
    return fail(ErrorCode::internal, "gathered_linear: cannot choose {} of {} groups of {} rows",
                op.count, op.groups, op.group_rows);
  }
  if (!(op.softcap >= 0)) {
    return fail(ErrorCode::internal, "gathered_linear: a softcap of {} is negative", op.softcap);
  }
  const uint64_t outputs = uint64_t{op.count} * op.group_rows;
  const uint64_t ordered = uint64_t{op.groups} * op.group_rows;
  TRY(gpu::check_indexable(ordered));
  TRY(check_size("gathered_linear", "x", op.x, uint64_t{weights.columns} * sizeof(float)));
  TRY(check_size("gathered_linear", "chosen", op.chosen, op.count * sizeof(uint32_t)));
  TRY(check_size("gathered_linear", "ordering", op.ordering, ordered * sizeof(uint32_t)));
  TRY(check_size("gathered_linear", "y", op.y, outputs * sizeof(float)));
  TRY(check_size("gathered_linear", "rows", op.rows, outputs * sizeof(uint32_t)));
  for (const MatrixPart& part : weights.parts) {
    TRY(gpu::check_indexable(uint64_t{part.rows} * weights.columns));
    TRY(check_size("gathered_linear", "weights", part.values, part.rows * planes[0].bytes_per_row));
    if (planes.size() > 1) {
      TRY(check_size("gathered_linear", "scales", part.scales,
                     part.rows * planes[1].bytes_per_row));
    }
  }
  return {};
}

}  // namespace

Route gathered_linear_route(const GatheredLinear& op, const MatrixPart& part,
                            const gpu::AdapterInfo& adapter) {
  // A processor runs one invocation after another: lanes only cost.
  const uint32_t lanes = adapter.software ? 1 : 16;
  const uint64_t outputs = uint64_t{op.count} * op.group_rows;
  // Of the rows chosen, the part's share of all: each is numbered, read and written.
  uint64_t row_bytes = 2 * sizeof(uint32_t) + sizeof(float);
  for (const spec::PlaneLayout& plane : spec::planes(op.weights.type, op.weights.columns)) {
    row_bytes += plane.bytes_per_row;
  }
  return {"gathered_linear",
          {{"TYPE", double(op.weights.type)},
           {"FIRST_ROW", double(part.first_row)},
           {"ROWS", double(part.rows)},
           {"COLUMNS", double(op.weights.columns)},
           {"GROUPS", double(op.groups)},
           {"GROUP_ROWS", double(op.group_rows)},
           {"OUTPUTS", double(outputs)},
           {"SOFTCAP", op.softcap},
           {"LANES", double(lanes)},
           {"WORKGROUP", double(workgroup)}},
          {.groups = (outputs * lanes + workgroup - 1) / workgroup},
          gpu::Traffic{.fixed = outputs * part.rows / op.weights.rows * row_bytes +
                                op.weights.columns * sizeof(float)}};
}

Result<void> record(gpu::CommandList& commands, const GatheredLinear& op) {
  TRY(check(op));
  for (const MatrixPart& part : op.weights.parts) {
    TRY(dispatch(commands, gathered_linear_route(op, part, commands.device().info()),
                 {gpu::uniform(op.step), gpu::read(part.values), gpu::read(part.bound_scales()),
                  gpu::read(op.x), gpu::read(op.chosen), gpu::read(op.ordering),
                  gpu::read_write(op.y), gpu::read_write(op.rows)}));
  }
  return {};
}

}  // namespace tandem::ops
