// The residual step and the product after it, from the references of their parts.
#include "ops/add_norm/add_norm.h"
#include "ops/linear_norm/linear_norm.h"
#include "ops/quantize/quantize.h"

namespace tandem::ops {

void linear_norm_reference(const HostMatrix& weights, Epilogue epilogue, RowFormat x_format,
                           double epsilon, std::span<const float> branch,
                           std::span<const float> weight, float scalar, std::span<float> h,
                           std::span<const float> next_weight, std::span<float> y) {
  std::vector<float> x(h.size());
  add_norm_reference(weights.columns, epsilon, branch, weight, scalar, h, next_weight, x);
  if (x_format == RowFormat::int8) quantize_reference(weights.columns, x);
  linear_reference(weights, epilogue, 0, 1, x, {}, y);
}

}  // namespace tandem::ops
