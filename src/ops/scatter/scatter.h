// Values into rows by index: y[row] = fill everywhere, but y[row][index[row][i]] = values[row][i].
// Indices outside the row are ignored. Of equal indices the last one counts.
//
// Routes: `unique` writes all values at once, where the caller knows that no index of a row comes
// twice; `ordered` looks behind each value for another of its index (count^2 comparisons a row).
#pragma once

#include <optional>

#include "ops/op.h"

namespace tandem::ops {

struct Scatter {
  uint32_t count = 0;         // values of a row, at least 1
  uint32_t columns = 0;       // of y
  std::optional<float> fill;  // none: the least of the row's values, less 1
  bool unique = false;        // no index of a row comes twice
  gpu::View step;
  gpu::View values;  // [max_rows][count], finite
  gpu::View index;   // u32 [max_rows][count]
  gpu::View y;       // [max_rows][columns]
  uint32_t max_rows = 0;
};

std::vector<Route> scatter_routes(const Scatter& op);
Result<void> record(gpu::CommandList& commands, const Scatter& op);

// values and index: [rows][count]; y: [rows][columns].
void scatter_reference(uint32_t count, uint32_t columns, std::optional<float> fill,
                       std::span<const float> values, std::span<const uint32_t> index,
                       std::span<float> y);

}  // namespace tandem::ops
