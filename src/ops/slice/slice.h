// Copies a block of columns of the live rows, or of one row alone:
//   all       y[row][c] = x[row][first_column + c]
//   last      y[0][c] = x[step.rows - 1][first_column + c]
#pragma once

#include "ops/op.h"

namespace tandem::ops {

enum class SliceRows { all, last };

struct Slice {
  uint32_t x_stride = 0;  // floats between rows of x
  uint32_t first_column = 0;
  uint32_t columns = 0;  // copied, and the row stride of y
  SliceRows rows = SliceRows::all;
  gpu::View step;
  gpu::View x;              // [max_rows][x_stride]
  gpu::View y;              // [max_rows][columns], or [1][columns]
  bool y_in_lanes = false;  // in lane order: whole rows can be
  uint32_t max_rows = 0;
};

Route slice_route(const Slice& op);
Result<void> record(gpu::CommandList& commands, const Slice& op);

void slice_reference(uint32_t x_stride, uint32_t first_column, uint32_t columns, SliceRows rows,
                     const Step& step, std::span<const float> x, std::span<float> y);

}  // namespace tandem::ops
