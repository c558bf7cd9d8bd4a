// The scatter on the host.
#include <algorithm>

#include "ops/scatter/scatter.h"

namespace tandem::ops {

void scatter_reference(uint32_t count, uint32_t columns, std::optional<float> fill,
                       std::span<const float> values, std::span<const uint32_t> index,
                       std::span<float> y) {
  for (size_t row = 0; row < values.size() / count; ++row) {
    const auto row_values = values.subspan(row * count, count);
    const auto row_y = y.subspan(row * columns, columns);
    const float least = *std::min_element(row_values.begin(), row_values.end());
    std::fill(row_y.begin(), row_y.end(), fill.value_or(least - 1));
    for (uint32_t i = 0; i < count; ++i) {
      const uint32_t column = index[row * count + i];
      if (column < columns) row_y[column] = row_values[i];
    }
  }
}

}  // namespace tandem::ops
