// The queries, from the references of the product and of RoPE.
#include "ops/linear/linear.h"
#include "ops/q_project/q_project.h"
#include "ops/qkv_rope/qkv_rope.h"

namespace tandem::ops {

void q_project_reference(const HostMatrix& weights, const spec::Rope& rope, double epsilon,
                         uint32_t position, uint32_t rows, std::span<const float> x,
                         std::span<const float> q_norm, std::span<float> q) {
  const auto head_dim = static_cast<uint32_t>(q_norm.size());
  std::vector<float> raw(size_t{rows} * weights.rows);
  linear_reference(weights, Epilogue::none, 0, rows, x, {}, raw);
  const QkvRopeShape shape = {.heads = weights.rows / head_dim,
                              .head_dim = head_dim,
                              .owns_kv = false,
                              .epsilon = epsilon,
                              .rope = rope};
  qkv_rope_reference(shape, position, rows, raw, q_norm, {}, q, {});
}

}  // namespace tandem::ops
