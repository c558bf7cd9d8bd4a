// A small matrix product and the residual step after it (add_norm), in one kernel:
//   v = W x
//   h = (h + rms_norm(v) * weight) * scalar    (without `weight`: h = v * scalar)
//   y = rms_norm(h) * next_weight
// One workgroup computes a whole row, so that this pays where dispatches cost more than bytes: in
// the MTP assistant.
#pragma once

#include "ops/op.h"

namespace tandem::ops {

struct LinearAddNorm {
  Matrix
      weights;  // [hidden, columns] in one part; hidden a multiple of 4 up to 1024, columns of 32
  float epsilon = 0;
  uint32_t lanes = 0;  // that share a weight row, a power of two up to 32; 0: as suits the shape
                       // and the adapter
  gpu::View step;
  gpu::View x;            // [max_rows][columns]
  gpu::View weight;       // [hidden], or none: h is overwritten
  gpu::View scalar;       // [1], or none: 1
  gpu::View h;            // [max_rows][hidden], updated in place
  gpu::View next_weight;  // [hidden]
  gpu::View y;            // [max_rows][hidden]
  uint32_t max_rows = 0;
};

Route linear_add_norm_route(const LinearAddNorm& op, const gpu::AdapterInfo& adapter);
Result<void> record(gpu::CommandList& commands, const LinearAddNorm& op);

// x: [rows][weights.columns]. `weight` may be empty.
void linear_add_norm_reference(const HostMatrix& weights, double epsilon, uint32_t rows,
                               std::span<const float> x, std::span<const float> weight,
                               float scalar, std::span<float> h, std::span<const float> next_weight,
                               std::span<float> y);

}  // namespace tandem::ops
