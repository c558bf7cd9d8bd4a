// The embedding gather on the CPU, with the kernel's rounding.
#include <vector>

#include "ops/embedding/embedding.h"

namespace tandem::ops {

void embedding_reference(const HostMatrix& table, uint32_t columns, float scale,
                         std::span<const uint32_t> tokens, std::span<float> y) {
  std::vector<float> row(table.columns);
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] >= table.rows) continue;
    dequantize_row(table, tokens[i], row);
    for (uint32_t c = 0; c < columns; ++c) y[i * columns + c] = scale * row[c];
  }
}

}  // namespace tandem::ops
