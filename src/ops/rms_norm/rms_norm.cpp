// Records the RMS norm.
#include "ops/rms_norm/rms_norm.h"

#include "base/error.h"

namespace tandem::ops {

Route rms_norm_route(const RmsNorm& op) {
  return {"rms_norm",
          {{"COLUMNS", double(op.columns)},
           {"EPSILON", op.epsilon},
           {"WEIGHTED", op.weight ? 1.0 : 0.0},
           {"Y_IN_LANES", op.y_in_lanes ? 1.0 : 0.0}},
          {.groups = 1, .rows_per_group = 1},
          gpu::Traffic{.fixed = (op.weight ? 1 : 0) * op.columns * sizeof(float),
                       .per_row = 2 * op.columns * sizeof(float)}};
}

Result<void> record(gpu::CommandList& commands, const RmsNorm& op) {
  if (op.y_in_lanes && !has_units(op.columns)) {
    return fail(ErrorCode::internal, "rms_norm: {} columns have no lane order", op.columns);
  }
  const uint64_t elements = uint64_t{op.max_rows} * op.columns;
  TRY(gpu::check_indexable(elements));
  TRY(check_size("rms_norm", "x", op.x, elements * sizeof(float)));
  TRY(check_size("rms_norm", "y", op.y, elements * sizeof(float)));
  const gpu::View weight = op.weight ? op.weight : op.x;
  TRY(check_size("rms_norm", "weight", weight, op.columns * sizeof(float)));
  return dispatch(
      commands, rms_norm_route(op),
      {gpu::uniform(op.step), gpu::read(op.x), gpu::read(weight), gpu::read_write(op.y)});
}

}  // namespace tandem::ops
