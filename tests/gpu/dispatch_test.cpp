// The arithmetic of dispatches: products, the fold, and the bound of indices.
#include "gpu/dispatch.h"

#include <gtest/gtest.h>

#include "gpu/probe.h"

namespace tandem::gpu {
namespace {

TEST(Workgroups, AreTheProductOfTheirFactors) {
  struct Case {
    Grid grid;
    Extent extent;
    uint64_t count;
  };
  const Case cases[] = {
      {{.groups = 7}, {.rows = 5, .positions = 9}, 7},
      {{.groups = 7, .rows_per_group = 1}, {.rows = 5, .positions = 9}, 35},
      {{.groups = 7, .rows_per_group = 4}, {.rows = 5, .positions = 9}, 14},
      {{.groups = 7, .rows_per_group = 4}, {.rows = 4, .positions = 9}, 7},
      {{.groups = 7, .positions_per_group = 4}, {.rows = 5, .positions = 9}, 21},
      {{.groups = 7, .rows_per_group = 2, .positions_per_group = 64}, {5, 65}, 42},
      {{.groups = 7, .rows_per_group = 2}, {.rows = 0, .positions = 1}, 0},
      {{.groups = uint64_t{1} << 31, .rows_per_group = 1},
       {.rows = UINT32_MAX, .positions = 1},
       (uint64_t{1} << 31) * UINT32_MAX},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(test::expect_value(workgroups(c.grid, c.extent)), c.count)
        << c.grid.groups << ' ' << c.grid.rows_per_group << ' ' << c.grid.positions_per_group;
  }
}

TEST(Workgroups, RefuseAnOverflow) {
  const Grid grid{.groups = uint64_t{1} << 32, .rows_per_group = 1, .positions_per_group = 1};
  EXPECT_TRUE(accepted(workgroups(grid, {.rows = UINT32_MAX, .positions = 1})));
  EXPECT_TRUE(refused(workgroups(grid, {.rows = UINT32_MAX, .positions = 2}),
                      ErrorCode::limit_exceeded, {"4294967296", "4294967295"}));
}

TEST(Fold, GivesTwoDimensionsAbove65535) {
  struct Case {
    uint64_t count;
    Workgroups workgroups;
  };
  constexpr uint64_t most = uint64_t{65535} * 65535;
  const Case cases[] = {{1, {1, 1}},           {65535, {65535, 1}},  {65536, {32768, 2}},
                        {65537, {32769, 2}},   {131070, {65535, 2}}, {131071, {43691, 3}},
                        {most, {65535, 65535}}};
  for (const Case& c : cases) {
    const Workgroups folded = test::expect_value(fold(c.count));
    EXPECT_EQ(folded.x, c.workgroups.x) << c.count;
    EXPECT_EQ(folded.y, c.workgroups.y) << c.count;
  }
  EXPECT_TRUE(refused(fold(most + 1), ErrorCode::limit_exceeded, {"4294836226", "65535"}));
  EXPECT_TRUE(refused(fold(UINT64_MAX), ErrorCode::limit_exceeded));
  EXPECT_TRUE(refused(fold(0), ErrorCode::invalid_argument, {"0 workgroups"}));
  EXPECT_TRUE(refused(fold(1, 0), ErrorCode::limit_exceeded));
}

// As kernels do it: index = x + y * num_workgroups.x, leaving when it is too large.
TEST(Fold, CoversEveryIndexOnce) {
  for (const uint32_t max : {1u, 2u, 7u, 64u}) {
    for (uint64_t count = 1; count <= uint64_t{max} * max; ++count) {
      const Workgroups folded = test::expect_value(fold(count, max));
      ASSERT_LE(folded.x, max);
      ASSERT_LE(folded.y, max);
      std::vector<int> visits(count);
      for (uint32_t y = 0; y < folded.y; ++y) {
        for (uint32_t x = 0; x < folded.x; ++x) {
          const uint64_t index = x + uint64_t{y} * folded.x;
          if (index < count) ++visits[index];
        }
      }
      ASSERT_EQ(visits, std::vector<int>(count, 1)) << count << " of at most " << max;
      ASSERT_LT(uint64_t{folded.x} * folded.y - count, folded.y) << "needless workgroups";
    }
  }
}

TEST(Bytes, FollowRowsAndThePositionsInReach) {
  struct Case {
    Traffic traffic;
    Extent extent;
    uint64_t bytes;
  };
  for (const Case& c :
       std::vector<Case>{{{}, {3, 9}, 0},
                         {{.fixed = 100, .per_row = 10, .per_position = 1}, {3, 9}, 139},
                         {{.per_position = 2, .window = 4}, {.rows = 1, .positions = 9}, 8},
                         {{.per_position = 2, .window = 4}, {.rows = 3, .positions = 9}, 12},
                         {{.per_position = 2, .window = 4}, {.rows = 3, .positions = 5}, 10},
                         {{.per_row = uint64_t{1} << 31}, {.rows = 8}, uint64_t{1} << 34}}) {
    EXPECT_EQ(bytes(c.traffic, c.extent), c.bytes);
  }
}

TEST(CheckIndexable, AllowsIndicesOf32Bits) {
  EXPECT_TRUE(accepted(check_indexable(0)));
  EXPECT_TRUE(accepted(check_indexable(uint64_t{1} << 32)));
  EXPECT_TRUE(refused(check_indexable((uint64_t{1} << 32) + 1), ErrorCode::limit_exceeded,
                      {"4294967297", "4294967296"}));
}

}  // namespace
}  // namespace tandem::gpu
