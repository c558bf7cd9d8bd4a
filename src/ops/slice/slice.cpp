// Records the copy of columns.
#include "ops/slice/slice.h"

#include "base/error.h"

namespace tandem::ops {

Route slice_route(const Slice& op) {
  // INVOCATIONS in slice.wgsl.
  constexpr uint32_t tile_columns = 256;
  const uint64_t row = 2 * op.columns * sizeof(float);
  return {"slice",
          {{"X_STRIDE", double(op.x_stride)},
           {"FIRST", double(op.first_column)},
           {"COLUMNS", double(op.columns)},
           {"ROWS", double(op.rows)},
           {"Y_IN_LANES", op.y_in_lanes ? 1.0 : 0.0}},
          {.groups = (op.columns + tile_columns - 1) / tile_columns,
           .rows_per_group = op.rows == SliceRows::all ? 1u : 0u},
          op.rows == SliceRows::all ? gpu::Traffic{.per_row = row} : gpu::Traffic{.fixed = row}};
}

Result<void> record(gpu::CommandList& commands, const Slice& op) {
  if (uint64_t{op.first_column} + op.columns > op.x_stride) {
    return fail(ErrorCode::invalid_argument, "slice: columns {} to {} are outside rows of {}",
                op.first_column, uint64_t{op.first_column} + op.columns, op.x_stride);
  }
  if (op.y_in_lanes && (op.columns != op.x_stride || !has_units(op.columns))) {
    return fail(ErrorCode::internal, "slice: {} of {} columns have no lane order", op.columns,
                op.x_stride);
  }
  TRY(gpu::check_indexable(uint64_t{op.max_rows} * op.x_stride));
  TRY(check_size("slice", "x", op.x, uint64_t{op.max_rows} * op.x_stride * sizeof(float)));
  const uint64_t y_rows = op.rows == SliceRows::all ? op.max_rows : 1;
  TRY(check_size("slice", "y", op.y, y_rows * op.columns * sizeof(float)));
  return dispatch(commands, slice_route(op),
                  {gpu::uniform(op.step), gpu::read(op.x), gpu::read_write(op.y)});
}

}  // namespace tandem::ops
