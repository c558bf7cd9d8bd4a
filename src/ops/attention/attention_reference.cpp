// Attention in double.
#include <algorithm>
#include <cmath>

#include "ops/attention/attention.h"

namespace tandem::ops {

void attention_reference(uint32_t heads, uint32_t kv_heads, uint32_t head_dim, uint32_t window,
                         uint32_t position, uint32_t rows, std::span<const float> q,
                         const HostKvCache& kv, std::span<float> y) {
  std::vector<double> scores;
  std::vector<double> total(head_dim);
  for (uint32_t row = 0; row < rows; ++row) {
    const uint32_t end = position + row + 1;
    const uint32_t begin = window == 0 ? 0 : end - std::min(end, window);
    for (uint32_t head = 0; head < heads; ++head) {
      const size_t kv_head = head / (heads / kv_heads);
      const auto cached = [&](std::span<const float> plane, uint32_t key) {
        return plane.subspan((key % kv.slots * kv_heads + kv_head) * head_dim, head_dim);
      };
      const auto query = q.subspan((size_t{row} * heads + head) * head_dim, head_dim);
      scores.assign(end - begin, 0);
      for (uint32_t key = begin; key < end; ++key) {
        const auto k = cached(kv.keys, key);
        for (uint32_t i = 0; i < head_dim; ++i) scores[key - begin] += double{query[i]} * k[i];
      }
      const double maximum = *std::max_element(scores.begin(), scores.end());
      double sum = 0;
      std::fill(total.begin(), total.end(), 0);
      for (uint32_t key = begin; key < end; ++key) {
        const double weight = std::exp(scores[key - begin] - maximum);
        const auto v = cached(kv.values, key);
        sum += weight;
        for (uint32_t i = 0; i < head_dim; ++i) total[i] += weight * v[i];
      }
      for (uint32_t i = 0; i < head_dim; ++i) {
        y[(size_t{row} * heads + head) * head_dim + i] = static_cast<float>(total[i] / sum);
      }
    }
  }
}

}  // namespace tandem::ops
