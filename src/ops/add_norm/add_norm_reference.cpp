// The residual step in double.
#include <cmath>

#include "ops/add_norm/add_norm.h"
#include "ops/rms_norm/rms_norm.h"

namespace tandem::ops {

void add_norm_reference(uint32_t columns, double epsilon, std::span<const float> x,
                        std::span<const float> weight, float scalar, std::span<float> h,
                        std::span<const float> next_weight, std::span<float> y) {
  for (size_t base = 0; base < x.size(); base += columns) {
    double sum = 0;
    for (size_t c = 0; c < columns; ++c) sum += double{x[base + c]} * x[base + c];
    const double scale = 1 / std::sqrt(sum / columns + epsilon);
    for (size_t c = 0; c < columns; ++c) {
      const double updated = (h[base + c] + x[base + c] * scale * weight[c]) * scalar;
      h[base + c] = static_cast<float>(updated);
    }
  }
  if (!next_weight.empty()) rms_norm_reference(columns, epsilon, h, next_weight, y);
}

}  // namespace tandem::ops
