// Records the residual step.
#include "ops/add_norm/add_norm.h"

#include "base/error.h"

namespace tandem::ops {

Route add_norm_route(const AddNorm& op) {
  const uint64_t next = op.next_weight ? 1 : 0;
  return {"add_norm",
          {{"COLUMNS", double(op.columns)},
           {"EPSILON", op.epsilon},
           {"SCALED", op.scalar ? 1.0 : 0.0},
           {"NEXT", op.next_weight ? 1.0 : 0.0},
           {"Y_FORMAT", double(op.y_format)}},
          {.groups = 1, .rows_per_group = 1},
          // Weights; x, h twice and y.
          gpu::Traffic{.fixed = (1 + next) * op.columns * sizeof(float),
                       .per_row = 3 * op.columns * sizeof(float) +
                                  next * row_bytes(op.y_format, op.columns)}};
}

Result<void> record(gpu::CommandList& commands, const AddNorm& op) {
  if (op.y_format != RowFormat::columns && !has_units(op.columns)) {
    return fail(ErrorCode::internal, "add_norm: {} columns have no units", op.columns);
  }
  if (op.columns % 4 != 0 || op.columns > 8192) {
    return fail(ErrorCode::unsupported,
                "add_norm: columns must be a multiple of 4 up to 8192, not {}", op.columns);
  }
  const uint64_t elements = uint64_t{op.max_rows} * op.columns;
  TRY(gpu::check_indexable(elements));
  TRY(check_size("add_norm", "x", op.x, elements * sizeof(float)));
  TRY(check_size("add_norm", "h", op.h, elements * sizeof(float)));
  TRY(check_size("add_norm", "weight", op.weight, op.columns * sizeof(float)));
  TRY(check_size("add_norm", "y", op.y, elements * sizeof(float)));
  const gpu::View scalar = op.scalar ? op.scalar : op.weight;
  const gpu::View next_weight = op.next_weight ? op.next_weight : op.weight;
  TRY(check_size("add_norm", "next_weight", next_weight, op.columns * sizeof(float)));
  return dispatch(commands, add_norm_route(op),
                  {gpu::uniform(op.step), gpu::read(op.x), gpu::read(op.weight), gpu::read(scalar),
                   gpu::read_write(op.h), gpu::read(next_weight), gpu::read_write(op.y)});
}

}  // namespace tandem::ops
