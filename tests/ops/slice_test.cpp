// Copies of columns: exact, for all row counts, through one recorded list.
#include "ops/slice/slice.h"

#include <gtest/gtest.h>

#include "ops/harness.h"
#include "ops/untouched.h"
#include "support/compare.h"
#include "support/device.h"

namespace tandem::ops {
namespace {

struct Case {
  uint32_t x_stride;
  uint32_t first_column;
  uint32_t columns;
  SliceRows kind;
  uint32_t max_rows;
  std::vector<uint32_t> rows;  // of the steps run one after the other
  const char* why;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.why; }

class SliceCases : public ::testing::TestWithParam<Case> {};

TEST_P(SliceCases, CopiesExactlyTheLiveRows) {
  const Case& c = GetParam();
  const auto x = test::random_floats(size_t{c.max_rows} * c.x_stride, 1);
  const size_t y_size = size_t{c.kind == SliceRows::all ? c.max_rows : 1} * c.columns;
  const gpu::Buffer step = test::upload(Step{});
  const gpu::Buffer input = test::upload(x);
  const gpu::Buffer y = test::poisoned(y_size * sizeof(float));
  gpu::CommandList commands(test::test_device());
  test::expect_success(record(commands, Slice{.x_stride = c.x_stride,
                                              .first_column = c.first_column,
                                              .columns = c.columns,
                                              .rows = c.kind,
                                              .step = step.view(),
                                              .x = input.view(),
                                              .y = y.view(),
                                              .max_rows = c.max_rows}));
  for (uint32_t rows : c.rows) {
    const std::vector<uint32_t> poison(y_size, test::poison_bits);
    const Step live = {.rows = rows};
    test::expect_success(test::test_device().write(y.view(), std::as_bytes(std::span(poison))));
    test::expect_success(
        test::test_device().write(step.view(), std::as_bytes(std::span(&live, 1))));
    test::run(commands, {.rows = std::max(rows, 1u)});

    const std::vector<float> actual = test::download(y.view());
    const uint32_t y_rows = c.kind == SliceRows::all ? rows : std::min(rows, 1u);
    std::vector<float> expected(size_t{y_rows} * c.columns);
    if (rows > 0) {
      slice_reference(c.x_stride, c.first_column, c.columns, c.kind, live, x, expected);
      // The copy's definition, at its two ends.
      const size_t first = c.kind == SliceRows::all ? 0 : rows - 1;
      EXPECT_EQ(expected.front(), x[first * c.x_stride + c.first_column]);
      EXPECT_EQ(expected.back(), x[(rows - 1) * c.x_stride + c.first_column + c.columns - 1]);
    }
    EXPECT_TRUE(test::same_bits(std::span(actual).first(expected.size()), expected)) << rows;
    EXPECT_TRUE(test::untouched(std::span(actual).subspan(expected.size()))) << rows;
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, SliceCases,
    ::testing::Values(
        Case{64, 0, 64, SliceRows::all, 8, {1, 8, 3, 0, 8}, "whole rows"},
        Case{100, 7, 31, SliceRows::all, 8, {8, 1, 5}, "columns at an odd offset"},
        Case{2000, 1000, 513, SliceRows::all, 4, {4, 1}, "columns over three workgroups"},
        Case{64, 16, 32, SliceRows::last, 8, {8, 1, 3, 0}, "the last row alone"},
        Case{1, 0, 1, SliceRows::all, 3, {3, 2}, "a single column"},
        Case{3,
             1,
             2,
             SliceRows::all,
             131073,
             {131073, 65535, 65536, 3, 65537, 1, 131071, 131073},
             "workgroups over 65535, folded and unfolded in turn"},
        Case{3, 0, 2, SliceRows::last, 70000, {70000, 1, 65536}, "the last of many rows"}));

TEST(Slice, RefusesColumnsOutsideTheRow) {
  gpu::Device& device = test::test_device();
  const gpu::Buffer step = test::upload(Step{.rows = 1});
  const gpu::Buffer x = test::poisoned(64 * sizeof(float));
  const gpu::Buffer y = test::poisoned(64 * sizeof(float));
  gpu::CommandList commands(device);
  const Slice good = {.x_stride = 32,
                      .first_column = 16,
                      .columns = 16,
                      .step = step.view(),
                      .x = x.view(),
                      .y = y.view(),
                      .max_rows = 2};
  EXPECT_TRUE(record(commands, good));
  Slice bad = good;
  bad.first_column = 17;
  EXPECT_FALSE(record(commands, bad));
  bad.first_column = 0xffffffff;
  EXPECT_FALSE(record(commands, bad));
  bad = good;
  bad.max_rows = 3;
  EXPECT_FALSE(record(commands, bad));
}

TEST(Slice, WritesLaneOrder) {
  constexpr uint32_t columns = 320, rows = 3;
  const auto x = test::random_floats(rows * columns, 1);
  const auto in_lanes = test::in_lane_order(x, columns);
  const gpu::Buffer step = test::upload(Step{.rows = rows}), plain = test::upload(x);
  const gpu::Buffer to_lanes = test::poisoned(columns * sizeof(float));
  Slice op{.x_stride = columns,
           .columns = columns,
           .rows = SliceRows::last,
           .step = step.view(),
           .x = plain.view(),
           .y = to_lanes.view(),
           .y_in_lanes = true,
           .max_rows = rows};
  gpu::CommandList commands(test::test_device());
  test::expect_success(record(commands, op));
  test::run(commands, {.rows = rows});
  EXPECT_TRUE(test::same_bits(test::download(to_lanes.view()), std::span(in_lanes).last(columns)));
  op.columns = 64;  // a part of a row
  EXPECT_FALSE(record(commands, op));
}

}  // namespace
}  // namespace tandem::ops
