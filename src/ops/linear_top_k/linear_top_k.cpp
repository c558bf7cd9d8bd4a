// Route and recording of the product with its largest values.
#include "ops/linear_top_k/linear_top_k.h"

#include "base/error.h"
#include "ops/row_product.h"

namespace tandem::ops {
namespace {

constexpr std::string_view kernel = "linear_top_k";

Result<void> check(const LinearTopK& op) {
  TRY(check_row_product(kernel, op.weights, op.weights.rows, 4, op.lanes));
  if (op.k == 0 || op.k > op.weights.rows) {
    return fail(ErrorCode::unsupported, "{}: k must be 1 to {}, not {}", kernel, op.weights.rows,
                op.k);
  }
  const uint64_t chosen = uint64_t{op.max_rows} * op.k;
  TRY(gpu::check_indexable(uint64_t{op.max_rows} * op.weights.columns));
  TRY(check_size(kernel, "x", op.x, uint64_t{op.max_rows} * op.weights.columns * sizeof(float)));
  TRY(check_size(kernel, "values", op.values, chosen * sizeof(float)));
  return check_size(kernel, "indices", op.indices, chosen * sizeof(uint32_t));
}

}  // namespace

Route linear_top_k_route(const LinearTopK& op, const gpu::AdapterInfo& adapter) {
  const auto& [type, rows, columns, parts] = op.weights;
  const uint32_t lanes = op.lanes != 0 ? op.lanes : row_product_lanes(rows, columns, adapter);
  return {
      kernel,
      {{"TYPE", double(type)},
       {"ROWS", double(rows)},
       {"COLUMNS", double(columns)},
       {"LANES", double(lanes)},
       {"K", double(op.k)}},
      {.groups = 1, .rows_per_group = 1},
      gpu::Traffic{.fixed = weight_bytes(op.weights),
                   .per_row = columns * sizeof(float) + op.k * (sizeof(float) + sizeof(uint32_t))}};
}

Result<void> record(gpu::CommandList& commands, const LinearTopK& op) {
  TRY(check(op));
  const MatrixPart& part = op.weights.parts[0];
  return dispatch(commands, linear_top_k_route(op, commands.device().info()),
                  {gpu::uniform(op.step), gpu::read(part.values), gpu::read(part.bound_scales()),
                   gpu::read(op.x), gpu::read_write(op.values), gpu::read_write(op.indices)});
}

}  // namespace tandem::ops
