// Route and recording of the queries.
#include "ops/q_project/q_project.h"

#include "base/error.h"
#include "ops/row_product.h"

namespace tandem::ops {
namespace {

constexpr std::string_view kernel = "q_project";

Result<void> check(const QProject& op) {
  TRY(check_row_product(kernel, op.weights, op.head_dim, 8, op.lanes));
  if (op.weights.rows % op.head_dim != 0) {
    return fail(ErrorCode::unsupported, "q_project: {} weight rows are no whole heads of {}",
                op.weights.rows, op.head_dim);
  }
  if (op.rotated_pairs == 0 || op.rotated_pairs > op.head_dim / 2) {
    return fail(ErrorCode::unsupported, "q_project: 1 to {} pairs can be rotated, not {}",
                op.head_dim / 2, op.rotated_pairs);
  }
  const uint64_t rows = op.max_rows;
  TRY(gpu::check_indexable(rows * op.weights.columns));
  TRY(gpu::check_indexable(rows * op.weights.rows));
  TRY(check_size(kernel, "x", op.x, rows * op.weights.columns * sizeof(float)));
  TRY(check_size(kernel, "q_norm", op.q_norm, op.head_dim * sizeof(float)));
  TRY(check_size(kernel, "angles", op.angles, uint64_t{op.rotated_pairs} * 2 * sizeof(float)));
  return check_size(kernel, "q", op.q, rows * op.weights.rows * sizeof(float));
}

}  // namespace

Route q_project_route(const QProject& op, const gpu::AdapterInfo& adapter) {
  const auto& [type, rows, columns, parts] = op.weights;
  const uint32_t heads = rows / op.head_dim;
  const uint32_t lanes =
      op.lanes != 0 ? op.lanes : row_product_lanes(op.head_dim, columns, adapter);
  return {kernel,
          {{"TYPE", double(type)},
           {"HEADS", double(heads)},
           {"HEAD_DIM", double(op.head_dim)},
           {"COLUMNS", double(columns)},
           {"ROTATED", double(op.rotated_pairs)},
           {"LANES", double(lanes)},
           {"EPSILON", op.epsilon}},
          {.groups = heads, .rows_per_group = 1},
          // The matrix and the norm; x, the angles and q.
          gpu::Traffic{.fixed = weight_bytes(op.weights) + op.head_dim * sizeof(float),
                       .per_row = (columns + 2 * op.rotated_pairs + rows) * sizeof(float)}};
}

Result<void> record(gpu::CommandList& commands, const QProject& op) {
  TRY(check(op));
  const MatrixPart& part = op.weights.parts[0];
  return dispatch(commands, q_project_route(op, commands.device().info()),
                  {gpu::uniform(op.step), gpu::read(part.values),
                   gpu::read(part.scales ? part.scales : part.values), gpu::read(op.x),
                   gpu::read(op.q_norm), gpu::read(op.angles), gpu::read_write(op.q)});
}

}  // namespace tandem::ops
