// Route and recording of the product with its residual step.
#include "ops/linear_add_norm/linear_add_norm.h"

#include "base/error.h"
#include "ops/row_product.h"

namespace tandem::ops {
namespace {

constexpr std::string_view kernel = "linear_add_norm";

Result<void> check(const LinearAddNorm& op) {
  const uint32_t hidden = op.weights.rows;
  const uint64_t row = uint64_t{hidden} * sizeof(float);
  TRY(check_row_product(kernel, op.weights, hidden, 4, op.lanes));
  TRY(gpu::check_indexable(uint64_t{op.max_rows} * op.weights.columns));
  TRY(gpu::check_indexable(uint64_t{op.max_rows} * hidden));
  TRY(check_size(kernel, "x", op.x, uint64_t{op.max_rows} * op.weights.columns * sizeof(float)));
  if (op.weight) TRY(check_size(kernel, "weight", op.weight, row));
  if (op.scalar) TRY(check_size(kernel, "scalar", op.scalar, sizeof(float)));
  TRY(check_size(kernel, "h", op.h, op.max_rows * row));
  TRY(check_size(kernel, "next_weight", op.next_weight, row));
  return check_size(kernel, "y", op.y, op.max_rows * row);
}

}  // namespace

Route linear_add_norm_route(const LinearAddNorm& op, const gpu::AdapterInfo& adapter) {
  const auto& [type, hidden, columns, parts] = op.weights;
  const uint32_t lanes = op.lanes != 0 ? op.lanes : row_product_lanes(hidden, columns, adapter);
  const uint64_t row = hidden * sizeof(float);
  return {kernel,
          {{"TYPE", double(type)},
           {"HIDDEN", double(hidden)},
           {"COLUMNS", double(columns)},
           {"LANES", double(lanes)},
           {"EPSILON", op.epsilon},
           {"ADD", op.weight ? 1.0 : 0.0},
           {"SCALED", op.scalar ? 1.0 : 0.0}},
          {.groups = 1, .rows_per_group = 1},
          // The matrix and the norms' weights; x, h (read too where it is added to) and y.
          gpu::Traffic{.fixed = weight_bytes(op.weights) + (op.weight ? 2 : 1) * row,
                       .per_row = columns * sizeof(float) + (op.weight ? 3 : 2) * row}};
}

Result<void> record(gpu::CommandList& commands, const LinearAddNorm& op) {
  TRY(check(op));
  const MatrixPart& part = op.weights.parts[0];
  return dispatch(commands, linear_add_norm_route(op, commands.device().info()),
                  {gpu::uniform(op.step), gpu::read(part.values), gpu::read(part.bound_scales()),
                   gpu::read(op.x), gpu::read(op.weight ? op.weight : op.next_weight),
                   gpu::read(op.scalar ? op.scalar : op.next_weight), gpu::read_write(op.h),
                   gpu::read(op.next_weight), gpu::read_write(op.y)});
}

}  // namespace tandem::ops
