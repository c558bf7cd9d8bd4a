// The RMS norm in double.
#include <cmath>

#include "ops/rms_norm/rms_norm.h"

namespace tandem::ops {

void rms_norm_reference(uint32_t columns, double epsilon, std::span<const float> x,
                        std::span<const float> weight, std::span<float> y) {
  for (size_t base = 0; base < x.size(); base += columns) {
    double sum = 0;
    for (size_t c = 0; c < columns; ++c) sum += double{x[base + c]} * x[base + c];
    const double scale = 1 / std::sqrt(sum / columns + epsilon);
    for (size_t c = 0; c < columns; ++c) {
      y[base + c] = static_cast<float>(x[base + c] * scale * (weight.empty() ? 1.0 : weight[c]));
    }
  }
}

}  // namespace tandem::ops
