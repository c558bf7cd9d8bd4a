// Argmax: the lowest index of the largest.
#include "ops/argmax/argmax.h"

namespace tandem::ops {

void argmax_reference(uint32_t columns, std::span<const float> logits, std::span<uint32_t> index,
                      std::span<const uint32_t> tokens) {
  for (size_t row = 0; row < index.size(); ++row) {
    const auto token = [&](uint32_t c) { return tokens.empty() ? c : tokens[row * columns + c]; };
    const auto logit = [&](uint32_t c) { return logits[row * columns + c]; };
    uint32_t best = 0;
    for (uint32_t c = 1; c < columns; ++c) {
      const bool ties = logit(c) == logit(best) && token(c) < token(best);
      if (logit(c) > logit(best) || ties) best = c;
    }
    index[row] = token(best);
  }
}

}  // namespace tandem::ops
