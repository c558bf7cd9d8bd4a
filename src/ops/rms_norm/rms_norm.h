// RMS norm: y = x / sqrt(mean(x^2) + epsilon) * weight, the mean over the columns of a row.
#pragma once

#include "ops/op.h"

namespace tandem::ops {

struct RmsNorm {
  uint32_t columns = 0;
  float epsilon = 0;
  gpu::View step;
  gpu::View x;              // [max_rows][columns]
  gpu::View weight;         // [columns], or none: all ones
  gpu::View y;              // [max_rows][columns]
  bool y_in_lanes = false;  // in lane order
  uint32_t max_rows = 0;
};

Route rms_norm_route(const RmsNorm& op);
Result<void> record(gpu::CommandList& commands, const RmsNorm& op);

// `weight` may be empty.
void rms_norm_reference(uint32_t columns, double epsilon, std::span<const float> x,
                        std::span<const float> weight, std::span<float> y);

}  // namespace tandem::ops
