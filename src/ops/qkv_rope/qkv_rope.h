// From projections to attention inputs, for each row at position p = step.position + row:
//   q = rope(rms_norm(q) * q_norm) * query_scale, k = rope(rms_norm(k) * k_norm), v = rms_norm(v)
//   (each over its head; without norms_values v stays as it is)
// q is written out; k and v go to the KV cache at slot p % slots. Layers that share KV have q
// alone. k_eq_v layers have no v projection: v is the raw k (before norm and RoPE). RoPE turns pair
// i, elements (i, i + head_dim / 2), by p * theta^(-2i / head_dim) / factor for i < rotated_pairs.
// head_dim is a multiple of 4.
#pragma once

#include "ops/op.h"
#include "spec/config.h"

namespace tandem::ops {

struct QkvRope {
  uint32_t heads = 0;
  uint32_t kv_heads = 0;
  uint32_t head_dim = 0;
  uint32_t rotated_pairs = 0;
  bool owns_kv = true;
  bool key_is_value = false;
  bool norms_values = true;
  float query_scale = 1;
  float epsilon = 0;
  gpu::View step;
  gpu::View qkv;     // [max_rows][(heads + kv_heads + kv_heads) * head_dim]; k_eq_v: without v;
                     // sharing: q alone
  gpu::View q_norm;  // [head_dim]
  gpu::View k_norm;  // [head_dim], if it owns KV
  gpu::View angles;  // [positions][rotated_pairs] pairs (cos, sin)
  gpu::View q;       // [max_rows][heads][head_dim]
  KvCache kv;        // written, if it owns KV
  uint32_t max_rows = 0;
};

Route qkv_rope_route(const QkvRope& op);
Result<void> record(gpu::CommandList& commands, const QkvRope& op);

// The table `angles` for positions 0 .. positions - 1, computed in double.
std::vector<float> rope_angles(const spec::Rope& rope, uint32_t head_dim, uint32_t positions);

struct QkvRopeShape {
  uint32_t heads = 0;
  uint32_t kv_heads = 0;
  uint32_t head_dim = 0;
  bool owns_kv = true;
  bool key_is_value = false;
  double epsilon = 0;
  spec::Rope rope;
  bool norms_values = true;
  double query_scale = 1;
};
// Angles in double from `rope` itself, independent of the table.
void qkv_rope_reference(const QkvRopeShape& shape, uint32_t position, uint32_t rows,
                        std::span<const float> qkv, std::span<const float> q_norm,
                        std::span<const float> k_norm, std::span<float> q, const HostKvCache& kv);

}  // namespace tandem::ops
