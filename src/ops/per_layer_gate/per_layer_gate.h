// The gate of the per-layer input, from the residual stream and the MLP's branch, which it returns
// to the stream:
//   sum = h + rms_norm(delta) * weight
//   y = gelu(W sum) * times
// As the product is linear, the norm's factor is found beside it, so that no dispatch adds the
// branch first. Each row has workgroups of its own, which pays for few rows of a small matrix.
#pragma once

#include "ops/op.h"

namespace tandem::ops {

struct PerLayerGate {
  Matrix weights;  // [width, hidden] in one part; hidden a multiple of 32
  float epsilon = 0;
  uint32_t lanes = 0;  // that share a weight row, a power of two up to 64; 0: as suits the shape
                       // and the adapter
  gpu::View step;
  gpu::View h;       // [max_rows][hidden]
  gpu::View delta;   // [max_rows][hidden]
  gpu::View weight;  // [hidden]
  gpu::View times;   // [max_rows][width]
  gpu::View sum;     // [max_rows][hidden], not h itself, which all workgroups read
  gpu::View y;       // [max_rows][width]
  uint32_t max_rows = 0;
};

// Whether the matrix is one that `weights` may be.
bool takes_per_layer_gate(const Matrix& weights);

Route per_layer_gate_route(const PerLayerGate& op, const gpu::AdapterInfo& adapter);
Result<void> record(gpu::CommandList& commands, const PerLayerGate& op);

// h, delta and sum: [rows][weights.columns]; times and y: [rows][weights.rows].
void per_layer_gate_reference(const HostMatrix& weights, double epsilon, uint32_t rows,
                              std::span<const float> h, std::span<const float> delta,
                              std::span<const float> weight, std::span<const float> times,
                              std::span<float> sum, std::span<float> y);

}  // namespace tandem::ops
