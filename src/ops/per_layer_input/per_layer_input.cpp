// Route and recording of the per-layer inputs.
#include "ops/per_layer_input/per_layer_input.h"

#include <algorithm>

#include "base/error.h"

namespace tandem::ops {

Route per_layer_input_route(const PerLayerInput& op) {
  return {"per_layer_input",
          {{"LAYERS", double(op.layers)},
           {"WIDTH", double(op.width)},
           {"CONTEXT_STRIDE", double(op.context_stride)},
           {"TABLE_STRIDE", double(op.table_stride)},
           {"LAYER_STRIDE", double(op.layer_stride)},
           {"CONTEXT_SCALE", op.context_scale},
           {"EPSILON", op.epsilon}},
          {op.layers, 1, 0},
          gpu::Traffic{.fixed = op.width * sizeof(float),
                       .per_row = 3 * sizeof(float) * op.layers * op.width}};
}

Result<void> record(gpu::CommandList& commands, const PerLayerInput& op) {
  const uint64_t row = uint64_t{op.layers} * op.width;
  const uint64_t rows = op.max_rows;
  if (rows == 0 || row == 0 || op.context_stride < row || op.table_stride < row ||
      op.layer_stride < rows * op.width) {
    return fail(ErrorCode::internal,
                "per_layer_input: {} rows of {} layers x {} do not fit strides of {} (context), {} "
                "(table) and {} (layer)",
                rows, op.layers, op.width, op.context_stride, op.table_stride, op.layer_stride);
  }
  constexpr std::string_view name = "per_layer_input";
  TRY(gpu::check_indexable(rows * std::max(op.context_stride, op.table_stride)));
  TRY(gpu::check_indexable(uint64_t{op.layers} * op.layer_stride));
  TRY(check_size(name, "context", op.context, ((rows - 1) * op.context_stride + row) * 4));
  TRY(check_size(name, "table", op.table, ((rows - 1) * op.table_stride + row) * 4));
  TRY(check_size(name, "weight", op.weight, uint64_t{op.width} * 4));
  TRY(check_size(name, "y", op.y,
                 (uint64_t{op.layers - 1} * op.layer_stride + rows * op.width) * 4));
  return dispatch(commands, per_layer_input_route(op),
                  {gpu::uniform(op.step), gpu::read(op.context), gpu::read(op.table),
                   gpu::read(op.weight), gpu::read_write(op.y)});
}

}  // namespace tandem::ops
