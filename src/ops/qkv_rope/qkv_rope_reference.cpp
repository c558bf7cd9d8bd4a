// q/k/v norm, RoPE and KV write in double.
#include <algorithm>
#include <cmath>

#include "base/half.h"
#include "ops/qkv_rope/qkv_rope.h"

namespace tandem::ops {
namespace {

double angle(const spec::Rope& rope, uint32_t head_dim, uint32_t position, uint32_t pair) {
  if (pair >= rope.rotated_pairs) return 0;
  return position / rope.factor * std::pow(rope.theta, -2.0 * pair / head_dim);
}

// The head divided by its root mean square, times `weight` if there is one.
std::vector<double> normed(std::span<const float> head, std::span<const float> weight,
                           double epsilon) {
  double sum = 0;
  for (float value : head) sum += double{value} * value;
  const double scale = 1 / std::sqrt(sum / double(head.size()) + epsilon);
  std::vector<double> result(head.size());
  for (size_t i = 0; i < head.size(); ++i) {
    result[i] = head[i] * scale * (weight.empty() ? 1.0 : weight[i]);
  }
  return result;
}

void turn(std::span<double> head, const spec::Rope& rope, uint32_t position) {
  const size_t half = head.size() / 2;
  for (uint32_t i = 0; i < half; ++i) {
    const double turned = angle(rope, uint32_t(head.size()), position, i);
    const double low = head[i], high = head[i + half];
    head[i] = low * std::cos(turned) - high * std::sin(turned);
    head[i + half] = high * std::cos(turned) + low * std::sin(turned);
  }
}

void store(std::span<const double> head, KvType type, std::span<float> cache) {
  for (size_t i = 0; i < head.size(); ++i) {
    const float value = static_cast<float>(head[i]);
    cache[i] =
        type == KvType::f32 ? value : from_half(to_half(std::clamp(value, -65504.0f, 65504.0f)));
  }
}

}  // namespace

std::vector<float> rope_angles(const spec::Rope& rope, uint32_t head_dim, uint32_t positions) {
  std::vector<float> angles;
  angles.reserve(size_t{positions} * rope.rotated_pairs * 2);
  for (uint32_t position = 0; position < positions; ++position) {
    for (uint32_t pair = 0; pair < rope.rotated_pairs; ++pair) {
      const double turned = angle(rope, head_dim, position, pair);
      angles.push_back(static_cast<float>(std::cos(turned)));
      angles.push_back(static_cast<float>(std::sin(turned)));
    }
  }
  return angles;
}

void qkv_rope_reference(const QkvRopeShape& shape, uint32_t position, uint32_t rows,
                        std::span<const float> qkv, std::span<const float> q_norm,
                        std::span<const float> k_norm, std::span<float> q, const HostKvCache& kv) {
  const size_t head_dim = shape.head_dim;
  const size_t value_heads = shape.key_is_value ? 0 : shape.kv_heads;
  const size_t sources = shape.heads + (shape.owns_kv ? shape.kv_heads + value_heads : 0);
  for (uint32_t row = 0; row < rows; ++row) {
    const auto source = [&](size_t head) {
      return qkv.subspan((row * sources + head) * head_dim, head_dim);
    };
    for (size_t head = 0; head < shape.heads; ++head) {
      std::vector<double> result = normed(source(head), q_norm, shape.epsilon);
      turn(result, shape.rope, position + row);
      std::transform(result.begin(), result.end(), &q[(row * shape.heads + head) * head_dim],
                     [&](double value) { return static_cast<float>(value * shape.query_scale); });
    }
    if (!shape.owns_kv) continue;
    for (size_t head = 0; head < shape.kv_heads; ++head) {
      const size_t slot = (position + row) % kv.slots;
      const size_t at = (slot * shape.kv_heads + head) * head_dim;
      std::vector<double> key = normed(source(shape.heads + head), k_norm, shape.epsilon);
      turn(key, shape.rope, position + row);
      store(key, kv.type, kv.keys.subspan(at, head_dim));
      const std::span<const float> value = source(shape.heads + value_heads + head);
      store(shape.norms_values ? normed(value, {}, shape.epsilon)
                               : std::vector<double>(value.begin(), value.end()),
            kv.type, kv.values.subspan(at, head_dim));
    }
  }
}

}  // namespace tandem::ops
