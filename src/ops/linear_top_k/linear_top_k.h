// The k largest of a small product W x and the rows of W that they are of, from the largest on; of
// equals, the lowest row first: `linear` and `top_k` in one kernel. One workgroup computes a whole
// row, so that this pays where dispatches cost more than bytes: in the MTP assistant.
#pragma once

#include "ops/op.h"

namespace tandem::ops {

struct LinearTopK {
  Matrix weights;      // [n, columns] in one part; n a multiple of 4 up to 1024, columns of 32
  uint32_t k = 0;      // at most n
  uint32_t lanes = 0;  // that share a weight row, a power of two up to 32; 0: as suits the shape
                       // and the adapter
  gpu::View step;
  gpu::View x;        // [max_rows][columns]
  gpu::View values;   // [max_rows][k]
  gpu::View indices;  // u32 [max_rows][k]
  uint32_t max_rows = 0;
};

Route linear_top_k_route(const LinearTopK& op, const gpu::AdapterInfo& adapter);
Result<void> record(gpu::CommandList& commands, const LinearTopK& op);

// x: [rows][weights.columns]; values and indices: [rows][k].
void linear_top_k_reference(const HostMatrix& weights, uint32_t k, uint32_t rows,
                            std::span<const float> x, std::span<float> values,
                            std::span<uint32_t> indices);

}  // namespace tandem::ops
