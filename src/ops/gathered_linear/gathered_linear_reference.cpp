// The gathered product in double.
#include <cmath>

#include "ops/gathered_linear/gathered_linear.h"

namespace tandem::ops {

void gathered_linear_reference(const HostMatrix& weights, uint32_t group_rows, double softcap,
                               std::span<const float> x, std::span<const uint32_t> chosen,
                               std::span<const uint32_t> ordering, std::span<float> y,
                               std::span<uint32_t> rows) {
  std::vector<float> row_weights(weights.columns);
  for (size_t output = 0; output < y.size(); ++output) {
    const size_t group = chosen[output / group_rows];
    rows[output] = ordering[group * group_rows + output % group_rows];
    dequantize_row(weights, rows[output], row_weights);
    double sum = 0;
    for (uint32_t c = 0; c < weights.columns; ++c) sum += double{row_weights[c]} * x[c];
    if (softcap > 0) sum = softcap * std::tanh(sum / softcap);
    y[output] = static_cast<float>(sum);
  }
}

}  // namespace tandem::ops
