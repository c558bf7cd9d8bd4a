// Route and recording of the residual step with the product after it.
#include "ops/linear_norm/linear_norm.h"

#include <algorithm>

#include "base/error.h"
#include "ops/row_product.h"

namespace tandem::ops {
namespace {

constexpr std::string_view name = "linear_norm";
constexpr uint32_t rows_per_lane = 4;
constexpr uint32_t most_int8_columns = 8192;
constexpr uint32_t most_columns = 2784;  // of f32, beside all sums in 16 KiB
// More of them are so many workgroups that what each reads of h costs more than a dispatch.
constexpr uint32_t most_rows = 65536;

Result<void> check(const LinearNorm& op) {
  const Linear& product = op.product;
  const uint64_t row = uint64_t{product.weights.columns} * sizeof(float);
  if (!takes_norm(product) || op.branch % 4 != 0) {
    return fail(ErrorCode::internal, "{}: no kernel for this product, or for a branch at {}", name,
                op.branch);
  }
  TRY(check_one_part(name, product.weights));
  TRY(check_size(name, "stream", op.stream, op.branch * sizeof(float) + row));
  TRY(check_size(name, "weight", op.weight, row));
  TRY(check_size(name, "next_weight", op.next_weight, row));
  if (op.scalar) TRY(check_size(name, "scalar", op.scalar, sizeof(float)));
  TRY(check_size(name, "next_h", op.next_h, row));
  return check_size(name, "y", product.y, uint64_t{outputs(product)} * sizeof(float));
}

}  // namespace

bool takes_norm(const Linear& product) {
  const Matrix& weights = product.weights;
  const bool int8 = product.x_format == RowFormat::int8;
  return product.rows == RowRoute::one && (int8 || product.x_format == RowFormat::lanes) &&
         (!int8 || takes_int8(weights.type)) && has_units(weights.columns) &&
         writes(product, product.y_format) &&
         (product.epilogue == Epilogue::none || product.epilogue == Epilogue::gelu_pair) &&
         weights.parts.size() == 1 && weights.rows <= most_rows &&
         weights.columns <= (int8 ? most_int8_columns : most_columns);
}

Route linear_norm_route(const LinearNorm& op, const gpu::AdapterInfo& adapter) {
  const Linear& product = op.product;
  const uint32_t hidden = product.weights.columns;
  const Tiling taken = tiling(product, adapter);
  const uint32_t group_rows = rows_per_lane * linear_norm_workgroup / taken.lanes;
  const uint32_t outputs = ops::outputs(product);
  const uint64_t row = hidden * sizeof(float);
  const bool int8 = product.x_format == RowFormat::int8;
  return {int8 ? "linear_norm_int8" : "linear_norm",
          {{"TYPE", double(product.weights.type)},
           {"EPILOGUE", double(product.epilogue)},
           {"ROWS", double(product.weights.rows)},
           {"COLUMNS", double(hidden)},
           {"LANES", double(taken.lanes)},
           {"AHEAD", double(taken.ahead)},
           {"WORDS", taken.units ? 4.0 : 1.0},
           {"Y_STRIDE", double(outputs)},
           {int8 ? "Y_INT8" : "Y_IN_LANES", product.y_format == RowFormat::columns ? 0.0 : 1.0},
           {"EPSILON", op.epsilon},
           {"SCALED", op.scalar ? 1.0 : 0.0},
           {"BRANCH", double(op.branch)}},
          {(product.weights.rows + group_rows - 1) / group_rows, 0, 0},
          gpu::Traffic{.fixed = weight_bytes(product.weights) + 2 * row,
                       .per_row = 3 * row + row_bytes(product.y_format, outputs)}};
}

Result<void> record(gpu::CommandList& commands, const LinearNorm& op) {
  TRY(check(op));
  const MatrixPart& part = op.product.weights.parts[0];
  return dispatch(
      commands, linear_norm_route(op, commands.device().info()),
      {gpu::uniform(op.product.step), gpu::read(part.values), gpu::read(part.bound_scales()),
       gpu::read(op.stream), gpu::read(op.weight), gpu::read(op.scalar ? op.scalar : op.weight),
       gpu::read(op.next_weight), gpu::read_write(op.next_h), gpu::read_write(op.product.y)});
}

}  // namespace tandem::ops
