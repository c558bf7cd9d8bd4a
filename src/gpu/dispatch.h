// The arithmetic of dispatches, free of any GPU type.
#pragma once

#include <cstdint>

#include "tandem/error.h"

namespace tandem::gpu {

// What the host knows at submission: how many rows a method runs and an upper bound of the KV
// positions it reads. Kernels leave early beyond the true values.
struct Extent {
  uint32_t rows = 1;
  uint32_t positions = 1;
};

// How many workgroups a dispatch needs, as a product whose last two factors are known only at
// submission:
//   groups * ceil(rows / rows_per_group) * ceil(positions / positions_per_group)
// where a factor whose divisor is 0 is left out.
struct Grid {
  uint64_t groups = 1;
  uint32_t rows_per_group = 0;
  uint32_t positions_per_group = 0;
};

Result<uint64_t> workgroups(const Grid& grid, const Extent& extent);

// How many distinct bytes a dispatch reads or writes at its extent:
//   fixed + rows * per_row + reached positions * per_position
// where a window keeps all but the last window + rows - 1 positions out of reach (0: none).
struct Traffic {
  uint64_t fixed = 0;
  uint64_t per_row = 0;
  uint64_t per_position = 0;
  uint32_t window = 0;
};

uint64_t bytes(const Traffic& traffic, const Extent& extent);

struct Workgroups {
  uint32_t x = 1;
  uint32_t y = 1;
};

// Folds a linear count of workgroups into two dimensions of at most `max_per_dimension` each. x * y
// may exceed `count`; kernels take workgroup_id.x + workgroup_id.y * num_workgroups.x as the linear
// index and leave when it is too large. Refuses a count of 0 and one that does not fit.
Result<Workgroups> fold(uint64_t count, uint32_t max_per_dimension = 65535);

// Refuses arrays whose element indices would not fit 32 bits, which is what WGSL indexes with.
Result<void> check_indexable(uint64_t elements);

}  // namespace tandem::gpu
