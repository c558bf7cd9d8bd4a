// Where a loader delivers verified weights: GPU buffers, host memory, or nowhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "tandem/error.h"

namespace tandem::artifact {

class WeightSink {
 public:
  virtual ~WeightSink() = default;
  // A part of a plane ("layers.0.qkv.quants") from `offset` on. Offsets are multiples of 16. Calls
  // never overlap in time; together they cover every plane once.
  virtual Result<void> write(std::string_view plane, uint64_t offset,
                             std::span<const std::byte> bytes) = 0;
};

}  // namespace tandem::artifact
