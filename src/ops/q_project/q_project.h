// The queries of a layer that owns no KV, from its normed input in one kernel (linear and then
// qkv_rope without KV), for each row at position p = step.position + row:
//   q = rope(rms_norm(W x) * q_norm), each over its head
// RoPE is that of qkv_rope. One workgroup computes a whole head, so that this pays where dispatches
// cost more than bytes: in the MTP assistant.
#pragma once

#include "ops/op.h"
#include "spec/config.h"

namespace tandem::ops {

struct QProject {
  Matrix weights;         // [heads * head_dim, columns] in one part; columns a multiple of 32
  uint32_t head_dim = 0;  // a multiple of 8 up to 1024
  uint32_t rotated_pairs = 0;
  float epsilon = 0;
  uint32_t lanes = 0;  // that share a weight row, a power of two up to 32; 0: as suits the shape
                       // and the adapter
  gpu::View step;
  gpu::View x;       // [max_rows][columns]
  gpu::View q_norm;  // [head_dim]
  gpu::View angles;  // [positions][rotated_pairs] pairs (cos, sin): rope_angles in qkv_rope.h
  gpu::View q;       // [max_rows][heads][head_dim]
  uint32_t max_rows = 0;
};

Route q_project_route(const QProject& op, const gpu::AdapterInfo& adapter);
Result<void> record(gpu::CommandList& commands, const QProject& op);

// x: [rows][weights.columns]; head_dim is the size of q_norm.
void q_project_reference(const HostMatrix& weights, const spec::Rope& rope, double epsilon,
                         uint32_t position, uint32_t rows, std::span<const float> x,
                         std::span<const float> q_norm, std::span<float> q);

}  // namespace tandem::ops
