// Activations to int8: of each unit of 32 columns of a row
//   d = largest |x| / 127,  q = round(x * (127 / largest |x|)), halves to even,
// so that a product reads d q in place of x. Rows turn from f32, column by column, to
// RowFormat::int8 (op.h) where they lie. A unit with something that is not finite has a d that is
// not. `AddNorm`, `Attention`, `Linear` and `LinearNorm` can write that format themselves.
#pragma once

#include "ops/op.h"

namespace tandem::ops {

struct Quantize {
  uint32_t columns = 0;  // a multiple of 32 up to 16384
  gpu::View step;
  gpu::View x;  // [max_rows][columns], in place
  uint32_t max_rows = 0;
};

Route quantize_route(const Quantize& op);
Result<void> record(gpu::CommandList& commands, const Quantize& op);

// Rows of `columns` to d q.
void quantize_reference(uint32_t columns, std::span<float> rows);
// The same as the words of RowFormat::int8, unused ones 0.
std::vector<uint32_t> int8_rows_reference(uint32_t columns, std::span<const float> rows);
// From those words to d q.
std::vector<float> int8_values(uint32_t columns, std::span<const uint32_t> rows);

}  // namespace tandem::ops
