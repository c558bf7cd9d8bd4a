// The k largest values of each row and their columns, from the largest on; of equals, the lowest
// column first.
//
// A row of up to 2048 columns takes one workgroup of 64 invocations and one dispatch. Of a longer
// row the same kernel takes the k largest of each part, and in a second dispatch those of the
// parts.
#pragma once

#include "ops/op.h"

namespace tandem::ops {

struct TopK {
  uint32_t columns = 0;
  uint32_t k = 0;  // at most columns and 64
  gpu::View step;
  gpu::View x;         // [max_rows][columns], finite
  gpu::View partials;  // scratch of top_k_partials_bytes; none where that is 0
  gpu::View values;    // [max_rows][k]
  gpu::View indices;   // u32 [max_rows][k]
  uint32_t max_rows = 0;
};

uint64_t top_k_partials_bytes(const TopK& op);
std::vector<Route> top_k_routes(const TopK& op);
Result<void> record(gpu::CommandList& commands, const TopK& op);

// values and indices: [x.size() / columns][k].
void top_k_reference(uint32_t columns, uint32_t k, std::span<const float> x,
                     std::span<float> values, std::span<uint32_t> indices);

}  // namespace tandem::ops
