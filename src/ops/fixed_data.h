// What the checks of a device compute with: always the same data.
#pragma once

#include "ops/op.h"

namespace tandem::ops {

// In [-1, 1).
std::vector<float> fixed_floats(size_t count);

// A matrix of fixed values, in one part.
struct FixedWeights {
  gpu::Buffer values;
  gpu::Buffer scales;  // none for f16 and f32

  gpu::View bound_scales() const { return scales.bytes() != 0 ? scales.view() : values.view(); }
  static Result<FixedWeights> make(gpu::Device& device, spec::WeightType type, uint64_t rows,
                                   uint32_t columns);
};

Result<gpu::Buffer> upload(gpu::Device& device, std::span<const std::byte> bytes);

}  // namespace tandem::ops
