// The copy of columns on the host.
#include <algorithm>

#include "ops/slice/slice.h"

namespace tandem::ops {

void slice_reference(uint32_t x_stride, uint32_t first_column, uint32_t columns, bool last_row,
                     uint32_t rows, std::span<const float> x, std::span<float> y) {
  const uint32_t first_row = last_row ? rows - 1 : 0;
  for (uint32_t row = first_row; row < rows; ++row) {
    const auto source = x.subspan(size_t{row} * x_stride + first_column, columns);
    std::copy(source.begin(), source.end(), &y[size_t{row - first_row} * columns]);
  }
}

}  // namespace tandem::ops
