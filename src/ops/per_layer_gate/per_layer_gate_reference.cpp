// The per-layer input's gate, from the references of its parts.
#include <algorithm>

#include "ops/add_norm/add_norm.h"
#include "ops/linear/linear.h"
#include "ops/per_layer_gate/per_layer_gate.h"

namespace tandem::ops {

void per_layer_gate_reference(const HostMatrix& weights, double epsilon, uint32_t rows,
                              std::span<const float> h, std::span<const float> delta,
                              std::span<const float> weight, std::span<const float> times,
                              std::span<float> sum, std::span<float> y) {
  std::copy(h.begin(), h.end(), sum.begin());
  add_norm_reference(weights.columns, epsilon, delta, weight, 1, sum, {}, {});
  linear_reference(weights, Epilogue::gelu_times, 0, rows, sum, times, y);
}

}  // namespace tandem::ops
