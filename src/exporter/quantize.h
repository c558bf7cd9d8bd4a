// Conversion of weights, one row at a time, from fp32 to the plane layouts of spec/layout.h.
//
// GPUs may flush fp16 subnormals to zero, so none is written: the magnitude of a block's scale is
// raised to the smallest normal fp16 (2^-14), which keeps every weight of the block within 2^-14;
// an f16 value below 2^-14 becomes zero or 2^-14, whichever is nearer. Both are counted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "spec/layout.h"

namespace tandem::exporter {

struct RowReport {
  uint64_t raised = 0;  // scales (or f16 values) that would have been subnormal
  bool finite = true;   // all weights are, and every scale, value and id fits its type
  bool exact = true;    // the stored weights equal the given ones

  RowReport& operator+=(const RowReport& other) {
    raised += other.raised;
    finite = finite && other.finite;
    exact = exact && other.exact;
    return *this;
  }
};

// Writes a row as `type`: `values` is its part of the plane "quants" or "values", `scales` that of
// the plane "scales" (empty for f16 and f32), in the sizes of spec::planes. Quantized types follow
// GGML's rules:
//   q4_0  d = (the first weight of largest magnitude) / -8, q = min(15, trunc(x / d + 8.5))
//   q8_0  d = (largest magnitude) / 127, q = x / d rounded half away from zero
// where the division is by d before it is rounded to fp16. Token ids (u32) pass as floats, which
// hold every id up to 2^24 exactly. What is not `finite` has unspecified
// bytes.
RowReport convert_row(spec::WeightType type, std::span<const float> row,
                      std::span<std::byte> values, std::span<std::byte> scales);

}  // namespace tandem::exporter
