// Conversion of whole tensors in bands of rows, so that memory does not grow with the tensor, on
// all cores, with the same bytes whatever the number of threads.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "exporter/bind.h"
#include "exporter/quantize.h"

namespace tandem::exporter {

// Some consecutive rows, converted.
struct Band {
  std::vector<std::byte> values;  // of the plane "quants" or "values"
  std::vector<std::byte> scales;
  uint64_t source_bytes = 0;
  RowReport report;
};

// Calls `use` with one band after the other until all rows are done or it returns false. A weight
// that is not finite, or too large for the type, is refused by the name of its tensor.
Result<void> for_each_band(const BoundTensor& tensor, spec::WeightType type, unsigned threads,
                           const std::function<Result<bool>(const Band&)>& use);

}  // namespace tandem::exporter
