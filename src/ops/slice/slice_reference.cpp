// The copy of columns on the host.
#include <algorithm>

#include "ops/slice/slice.h"

namespace tandem::ops {

void slice_reference(uint32_t x_stride, uint32_t first_column, uint32_t columns, SliceRows rows,
                     const Step& step, std::span<const float> x, std::span<float> y) {
  const auto copy = [&](size_t from, size_t to) {
    const auto source = x.subspan(from * x_stride + first_column, columns);
    std::copy(source.begin(), source.end(), &y[to * columns]);
  };
  if (rows == SliceRows::last) return copy(step.rows - 1, 0);
  for (uint32_t row = 0; row < step.rows; ++row) copy(row, row);
}

}  // namespace tandem::ops
