// The arithmetic of dispatches: checked products and the fold into two dimensions.
#include "gpu/dispatch.h"

#include <algorithm>

#include "base/error.h"

namespace tandem::gpu {
namespace {

constexpr uint64_t ceil_divide(uint64_t value, uint64_t divisor) {
  return value / divisor + (value % divisor != 0);
}

}  // namespace

Result<uint64_t> workgroups(const Grid& grid, const Extent& extent) {
  uint64_t count = grid.groups;
  const auto times = [&count](uint64_t factor) {
    const bool fits = factor == 0 || count <= UINT64_MAX / factor;
    count *= factor;
    return fits;
  };
  if ((grid.rows_per_group != 0 && !times(ceil_divide(extent.rows, grid.rows_per_group))) ||
      (grid.positions_per_group != 0 &&
       !times(ceil_divide(extent.positions, grid.positions_per_group)))) {
    return fail(ErrorCode::limit_exceeded,
                "{} groups for {} rows and {} positions: the count of workgroups overflows",
                grid.groups, extent.rows, extent.positions);
  }
  return count;
}

uint64_t bytes(const Traffic& traffic, const Extent& extent) {
  const uint64_t rows = extent.rows;
  uint64_t reached = extent.positions;
  if (traffic.window != 0) reached = std::min(reached, traffic.window + rows - 1);
  return traffic.fixed + rows * traffic.per_row + reached * traffic.per_position;
}

Result<Workgroups> fold(uint64_t count, uint32_t max_per_dimension) {
  if (count == 0) return fail(ErrorCode::invalid_argument, "a dispatch of 0 workgroups");
  const uint64_t max = max_per_dimension;
  if (count > max * max) {
    return fail(ErrorCode::limit_exceeded,
                "a dispatch of {} workgroups, expected at most {} x {}; split it", count, max, max);
  }
  // The fewest rows, and of those the narrowest, so that the fewest workgroups are in excess.
  const uint64_t y = ceil_divide(count, max);
  return Workgroups{static_cast<uint32_t>(ceil_divide(count, y)), static_cast<uint32_t>(y)};
}

Result<void> check_indexable(uint64_t elements) {
  constexpr uint64_t most = uint64_t{1} << 32;
  if (elements > most) {
    return fail(ErrorCode::limit_exceeded,
                "an array of {} elements, expected at most {} (32-bit indices); split it", elements,
                most);
  }
  return {};
}

}  // namespace tandem::gpu
