// The residual step between two parts of a layer, in one kernel:
//   h = (h + rms_norm(x) * weight) * scalar
//   y = rms_norm(h) * next_weight            (only if there is a next norm)
#pragma once

#include "ops/op.h"

namespace tandem::ops {

struct AddNorm {
  uint32_t columns = 0;  // a multiple of 4 up to 8192
  float epsilon = 0;
  gpu::View step;
  gpu::View x;            // [max_rows][columns]
  gpu::View weight;       // [columns]
  gpu::View scalar;       // [1], or none: 1
  gpu::View h;            // [max_rows][columns], updated in place
  gpu::View next_weight;  // [columns], or none: y stays as it is
  gpu::View y;            // [max_rows][columns]
  RowFormat y_format = RowFormat::columns;
  uint32_t max_rows = 0;
};

Route add_norm_route(const AddNorm& op);
Result<void> record(gpu::CommandList& commands, const AddNorm& op);

// `next_weight` and `y` may be empty together.
void add_norm_reference(uint32_t columns, double epsilon, std::span<const float> x,
                        std::span<const float> weight, float scalar, std::span<float> h,
                        std::span<const float> next_weight, std::span<float> y);

}  // namespace tandem::ops
