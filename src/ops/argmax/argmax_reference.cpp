// Argmax: the first of the largest.
#include <algorithm>

#include "ops/argmax/argmax.h"

namespace tandem::ops {

void argmax_reference(uint32_t columns, std::span<const float> logits, std::span<uint32_t> index) {
  for (size_t row = 0; row < index.size(); ++row) {
    const auto values = logits.subspan(row * columns, columns);
    index[row] =
        static_cast<uint32_t>(std::max_element(values.begin(), values.end()) - values.begin());
  }
}

}  // namespace tandem::ops
