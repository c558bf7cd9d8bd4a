// The product with its residual step, from their references.
#include <algorithm>

#include "ops/add_norm/add_norm.h"
#include "ops/linear/linear.h"
#include "ops/linear_add_norm/linear_add_norm.h"
#include "ops/rms_norm/rms_norm.h"

namespace tandem::ops {

void linear_add_norm_reference(const HostMatrix& weights, double epsilon, uint32_t rows,
                               std::span<const float> x, std::span<const float> weight,
                               float scalar, std::span<float> h, std::span<const float> next_weight,
                               std::span<float> y) {
  std::vector<float> v(size_t{rows} * weights.rows);
  linear_reference(weights, Epilogue::none, 0, rows, x, {}, v);
  if (!weight.empty()) {
    add_norm_reference(weights.rows, epsilon, v, weight, scalar, h, next_weight, y);
    return;
  }
  std::transform(v.begin(), v.end(), h.begin(), [&](float value) { return value * scalar; });
  rms_norm_reference(weights.rows, epsilon, h, next_weight, y);
}

}  // namespace tandem::ops
