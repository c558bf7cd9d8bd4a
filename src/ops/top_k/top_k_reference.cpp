// The k largest by a stable sort.
#include <algorithm>
#include <numeric>

#include "ops/top_k/top_k.h"

namespace tandem::ops {

void top_k_reference(uint32_t columns, uint32_t k, std::span<const float> x,
                     std::span<float> values, std::span<uint32_t> indices) {
  std::vector<uint32_t> order(columns);
  for (size_t row = 0; row < x.size() / columns; ++row) {
    const auto x_row = x.subspan(row * columns, columns);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](uint32_t a, uint32_t b) { return x_row[a] > x_row[b]; });
    for (uint32_t i = 0; i < k; ++i) {
      indices[row * k + i] = order[i];
      values[row * k + i] = x_row[order[i]];
    }
  }
}

}  // namespace tandem::ops
