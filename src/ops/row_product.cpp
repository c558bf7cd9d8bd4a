#include "ops/row_product.h"

#include <algorithm>
#include <bit>

#include "base/error.h"

namespace tandem::ops {
namespace {

constexpr uint32_t invocations = 256;
constexpr uint32_t rows_per_lane = 4;
constexpr uint32_t most_rows = invocations * rows_per_lane;

}  // namespace

Result<void> check_one_part(std::string_view op, const Matrix& weights) {
  const std::vector<spec::PlaneLayout> planes = spec::planes(weights.type, weights.columns);
  if (weights.type == spec::WeightType::u32 || weights.columns == 0 ||
      weights.columns % spec::block_columns != 0) {
    return fail(ErrorCode::unsupported,
                "{}: expected weights of whole blocks of {} columns, not {} "
                "weights of {} columns",
                op, spec::block_columns, spec::name(weights.type), weights.columns);
  }
  if (weights.parts.size() != 1 || weights.parts[0].rows != weights.rows) {
    return fail(ErrorCode::unsupported, "{}: expected weights in one part, not {} parts", op,
                weights.parts.size());
  }
  TRY(gpu::check_indexable(uint64_t{weights.rows} * weights.columns));
  const MatrixPart& part = weights.parts[0];
  TRY(check_size(op, "weights", part.values, weights.rows * planes[0].bytes_per_row));
  if (planes.size() == 1) return {};
  return check_size(op, "scales", part.scales, weights.rows * planes[1].bytes_per_row);
}

Result<void> check_row_product(std::string_view op, const Matrix& weights, uint32_t rows,
                               uint32_t row_step, uint32_t lanes) {
  if (rows == 0 || rows > most_rows || rows % row_step != 0) {
    return fail(ErrorCode::unsupported,
                "{}: a workgroup computes up to {} weight rows, a multiple of {}, not {}", op,
                most_rows, row_step, rows);
  }
  if (lanes > 32 || (lanes & (lanes - 1)) != 0) {
    return fail(ErrorCode::internal, "{}: {} lanes are no power of two up to 32", op, lanes);
  }
  return check_one_part(op, weights);
}

uint32_t row_product_lanes(uint32_t rows, uint32_t columns, const gpu::AdapterInfo& adapter) {
  // A processor runs one invocation after another: lanes only cost.
  if (adapter.software) return 1;
  const uint32_t busy = std::bit_ceil(most_rows / std::max(rows, rows_per_lane));
  return std::min({busy, 32u, std::bit_floor(columns / spec::block_columns)});
}

bool pays_in_one_workgroup(const Matrix& weights) {
  constexpr uint64_t most_weights = 70'000;  // measured on an H200 (docs/operators.md)
  return uint64_t{weights.rows} * weights.columns <= most_weights &&
         check_row_product("", weights, weights.rows, 4, 0).has_value();
}

uint64_t weight_bytes(const Matrix& weights) {
  uint64_t bytes = 0;
  for (const spec::PlaneLayout& plane : spec::planes(weights.type, weights.columns)) {
    bytes += weights.rows * plane.bytes_per_row;
  }
  return bytes;
}

}  // namespace tandem::ops
