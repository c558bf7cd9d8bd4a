// Attention of each row over the KV cache, scale 1, softmax in f32: query head h reads KV head h /
// (heads / kv_heads) at positions max(0, p - window + 1) .. p (window 0: from 0), where p =
// step.position + row - lag. The lag is 1 for queries whose own position has no KV yet (the
// assistant's), else 0.
//
// Routes: `split` (few rows): one workgroup per (row, heads of one KV head, tile of keys), then a
// combine. Tiles start at absolute positions, multiples of their size, so that a row's bits do not
// depend on the rows beside it. `whole` (many rows): one workgroup walks all keys of up to 32
// queries, heads of one KV head of neighbouring rows. head_dim is a multiple of 8, at most 512.
#pragma once

#include "ops/op.h"

namespace tandem::ops {

enum class AttentionRoute { split, whole };

// Turns queries as qkv_rope does, for layers that own no KV.
struct QueryRope {
  uint32_t rotated_pairs = 0;
  float epsilon = 0;
  gpu::View q_norm;  // [head_dim]
  gpu::View angles;  // [positions][rotated_pairs] pairs (cos, sin): rope_angles in qkv_rope.h
};

struct Attention {
  uint32_t heads = 0;
  uint32_t kv_heads = 0;
  uint32_t head_dim = 0;
  uint32_t window = 0;     // 0: full
  uint32_t lag = 0;        // no row's position is below it
  uint32_t positions = 0;  // the context: no row's position reaches it
  AttentionRoute route = AttentionRoute::split;
  uint32_t queries = 0;  // of the route split: heads that a workgroup takes, up to 4, and
  uint32_t tile = 0;     // its keys, 32 or 64; 0: as suits the shape and the adapter
  gpu::View step;
  gpu::View q;                    // [max_rows][heads][head_dim]
  std::optional<QueryRope> rope;  // route split: q is as its product leaves it
  KvCache kv;
  gpu::View partials;                       // route split: scratch of attention_partials_bytes
  gpu::View y;                              // [max_rows][heads * head_dim]
  RowFormat y_format = RowFormat::columns;  // or int8: see `writes_int8`
  uint32_t max_rows = 0;
};

// Whether y can be int8: by the route split, of heads of whole units.
bool writes_int8(const Attention& op);

uint64_t attention_partials_bytes(const Attention& op);
std::vector<Route> attention_routes(const Attention& op, const gpu::AdapterInfo& adapter);
Result<void> record(gpu::CommandList& commands, const Attention& op);

// q and y: [rows][heads][head_dim]; `position` is p of row 0.
void attention_reference(uint32_t heads, uint32_t kv_heads, uint32_t head_dim, uint32_t window,
                         uint32_t position, uint32_t rows, std::span<const float> q,
                         const HostKvCache& kv, std::span<float> y);

}  // namespace tandem::ops
