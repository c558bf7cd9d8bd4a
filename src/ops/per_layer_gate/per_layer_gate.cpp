// Route and recording of the per-layer input's gate.
#include "ops/per_layer_gate/per_layer_gate.h"

#include <algorithm>
#include <bit>

#include "base/error.h"
#include "ops/row_product.h"

namespace tandem::ops {
namespace {

constexpr std::string_view kernel = "per_layer_gate";
constexpr uint32_t most_lanes = 256;
constexpr uint32_t rows_per_lane = 4;

Result<void> check(const PerLayerGate& op) {
  const uint64_t rows = op.max_rows;
  const uint64_t hidden_bytes = uint64_t{op.weights.columns} * sizeof(float);
  const uint64_t width_bytes = uint64_t{op.weights.rows} * sizeof(float);
  TRY(check_one_part(kernel, op.weights));
  if (op.lanes > most_lanes || (op.lanes & (op.lanes - 1)) != 0) {
    return fail(ErrorCode::internal, "{}: {} lanes are no power of two up to {}", kernel, op.lanes,
                most_lanes);
  }
  TRY(gpu::check_indexable(rows * op.weights.columns));
  TRY(gpu::check_indexable(rows * op.weights.rows));
  TRY(check_size(kernel, "h", op.h, rows * hidden_bytes));
  TRY(check_size(kernel, "delta", op.delta, rows * hidden_bytes));
  TRY(check_size(kernel, "weight", op.weight, hidden_bytes));
  TRY(check_size(kernel, "sum", op.sum, rows * hidden_bytes));
  TRY(check_size(kernel, "times", op.times, rows * width_bytes));
  return check_size(kernel, "y", op.y, rows * width_bytes);
}

uint32_t lanes_for(const PerLayerGate& op, const gpu::AdapterInfo& adapter) {
  if (op.lanes != 0) return op.lanes;
  // A software adapter runs one invocation after another: more lanes only cost.
  if (adapter.software) return 1;
  return std::min(std::bit_ceil(op.weights.columns / 8), most_lanes);
}

}  // namespace

bool takes_per_layer_gate(const Matrix& weights) {
  return weights.parts.size() == 1 && weights.columns % spec::block_columns == 0;
}

Route per_layer_gate_route(const PerLayerGate& op, const gpu::AdapterInfo& adapter) {
  const auto& [type, width, hidden, parts] = op.weights;
  const uint32_t lanes = lanes_for(op, adapter);
  const uint32_t workgroup = std::max(64u, lanes);
  const uint32_t rows_per_group = rows_per_lane * workgroup / lanes;
  return {kernel,
          {{"TYPE", double(type)},
           {"ROWS", double(width)},
           {"COLUMNS", double(hidden)},
           {"LANES", double(lanes)},
           {"WORKGROUP", double(workgroup)},
           {"EPSILON", op.epsilon}},
          {.groups = (width + rows_per_group - 1) / rows_per_group, .rows_per_group = 1},
          // The matrix and the norm's weight; h, delta, sum, times and y.
          gpu::Traffic{.fixed = weight_bytes(op.weights) + hidden * sizeof(float),
                       .per_row = (3 * uint64_t{hidden} + 2 * width) * sizeof(float)}};
}

Result<void> record(gpu::CommandList& commands, const PerLayerGate& op) {
  TRY(check(op));
  const MatrixPart& part = op.weights.parts[0];
  return dispatch(commands, per_layer_gate_route(op, commands.device().info()),
                  {gpu::uniform(op.step), gpu::read(part.values), gpu::read(part.bound_scales()),
                   gpu::read(op.h), gpu::read(op.delta), gpu::read(op.weight), gpu::read(op.times),
                   gpu::read_write(op.sum), gpu::read_write(op.y)});
}

}  // namespace tandem::ops
