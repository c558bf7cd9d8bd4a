// The per-layer inputs in double.
#include <cmath>
#include <numbers>

#include "ops/per_layer_input/per_layer_input.h"

namespace tandem::ops {

void per_layer_input_reference(uint32_t rows, uint32_t layers, uint32_t width, float context_scale,
                               double epsilon, std::span<const float> context,
                               std::span<const float> table, std::span<const float> weight,
                               std::span<float> y) {
  const double scale = context_scale;
  for (uint32_t row = 0; row < rows; ++row) {
    for (uint32_t layer = 0; layer < layers; ++layer) {
      const size_t from = (size_t{row} * layers + layer) * width;
      const size_t to = (size_t{layer} * rows + row) * width;
      double squares = 0;
      for (uint32_t i = 0; i < width; ++i) {
        squares += std::pow(scale * double{context[from + i]}, 2);
      }
      const double factor = scale / std::sqrt(squares / width + epsilon);
      for (uint32_t i = 0; i < width; ++i) {
        const double normed = double{context[from + i]} * factor * double{weight[i]};
        y[to + i] = static_cast<float>((normed + double{table[from + i]}) / std::numbers::sqrt2);
      }
    }
  }
}

}  // namespace tandem::ops
