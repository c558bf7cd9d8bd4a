// The k largest on the GPU against a stable sort, by one stage and by two.
#include "ops/top_k/top_k.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "ops/harness.h"
#include "ops/untouched.h"
#include "support/compare.h"
#include "support/device.h"

namespace tandem::ops {
namespace {

struct Top {
  std::vector<float> values;
  std::vector<uint32_t> indices;
};

// Of the first `rows` rows; what lies beyond must stay poison.
Top on_gpu(uint32_t columns, uint32_t k, uint32_t rows, const std::vector<float>& x) {
  TopK op = {.columns = columns, .k = k, .max_rows = static_cast<uint32_t>(x.size() / columns)};
  const gpu::Buffer step = test::upload(Step{.rows = rows});
  const gpu::Buffer input = test::upload(x);
  const uint64_t partials_bytes = top_k_partials_bytes(op);
  const gpu::Buffer partials = test::poisoned(std::max<uint64_t>(partials_bytes, 4));
  const gpu::Buffer values = test::poisoned(uint64_t{op.max_rows} * k * 4);
  const gpu::Buffer indices = test::poisoned(uint64_t{op.max_rows} * k * 4);
  op.step = step.view(), op.x = input.view();
  if (partials_bytes > 0) op.partials = partials.view();
  op.values = values.view(), op.indices = indices.view();
  gpu::CommandList commands(test::test_device());
  test::expect_success(record(commands, op));
  test::run(commands, {.rows = op.max_rows});
  Top top = {test::download(values.view()), test::download_as<uint32_t>(indices.view())};
  EXPECT_TRUE(test::untouched(std::span<const float>(top.values).subspan(rows * k)));
  EXPECT_TRUE(test::untouched(std::span<const uint32_t>(top.indices).subspan(rows * k)));
  top.values.resize(rows * k), top.indices.resize(rows * k);
  return top;
}

void expect_reference(uint32_t columns, uint32_t k, uint32_t rows, const std::vector<float>& x,
                      const std::string& what) {
  Top expected = {std::vector<float>(rows * k), std::vector<uint32_t>(rows * k)};
  top_k_reference(columns, k, std::span(x).first(size_t{rows} * columns), expected.values,
                  expected.indices);
  const Top top = on_gpu(columns, k, rows, x);
  EXPECT_TRUE(test::same_bits(top.values, expected.values)) << what;
  EXPECT_EQ(top.indices, expected.indices) << what;
}

struct Case {
  uint32_t columns;
  uint32_t k;
  uint32_t rows;
  const char* why;
};

const Case cases[] = {
    {2048, 32, 1, "E2B's centroids"},
    {256, 16, 1, "atlas' centroids"},
    {2048, 32, 3, "rows"},
    {1, 1, 2, "one column"},
    {5, 5, 2, "a whole row, sorted"},
    {63, 63, 1, "fewer columns than invocations"},
    {64, 64, 1, "the largest k, a whole row"},
    {2048, 64, 1, "the longest row of one stage"},
    {2049, 32, 2, "the shortest row of two stages"},
    {2050, 1, 2, "k of 1 in two stages"},
    {8192, 64, 2, "atlas' vocabulary"},
    {65600, 64, 1, "parts of more than 2048 columns, the last one short"},
    {262144, 64, 1, "E2B's vocabulary"},
};

TEST(TopK, AgreesWithTheReference) {
  for (const Case& c : cases) {
    // One row beyond the live ones.
    const auto x = test::random_floats(size_t{c.rows + 1} * c.columns, c.columns + c.k, 30);
    expect_reference(c.columns, c.k, c.rows, x, c.why);
  }
}

TEST(TopK, TheLowestColumnsWinTies) {
  for (uint32_t columns : {300u, 2048u, 5000u}) {
    for (float step : {1.0f, 0.25f, 40.0f}) {
      auto x = test::random_floats(2 * columns, columns, 3);
      for (float& value : x) value = step * std::round(value / step);  // few distinct values
      expect_reference(columns, 32, 2, x, fmt::format("{} columns, steps of {}", columns, step));
    }
  }
}

TEST(TopK, EqualRowsGiveTheFirstColumns) {
  for (float value : {0.0f, -7.0f, -3.4028234e38f, 3.4028234e38f}) {
    for (uint32_t columns : {100u, 4100u}) {
      expect_reference(columns, 64, 1, std::vector<float>(columns, value),
                       fmt::format("{} columns of {}", columns, value));
    }
  }
}

TEST(TopK, ZerosOfBothSignsTieAndKeepTheirSign) {
  std::vector<float> x(3000, -1.0f);
  x[10] = -0.0f, x[2999] = 0.0f, x[2000] = -0.0f;
  expect_reference(3000, 4, 1, x, "zeros");
}

// All of the largest in one part: the other parts' values are of no use.
TEST(TopK, TheLargestMayLieTogether) {
  for (uint32_t first : {0u, 4100u, 8192u - 64u}) {
    std::vector<float> x(8192, -5.0f);
    for (uint32_t i = 0; i < 64; ++i) x[first + i] = static_cast<float>(i % 48);
    expect_reference(8192, 64, 1, x, fmt::format("from {}", first));
  }
}

TEST(TopK, AStepOfNoRowsWritesNothing) {
  for (uint32_t columns : {256u, 5000u}) {
    EXPECT_TRUE(on_gpu(columns, 16, 0, test::random_floats(columns, 1)).indices.empty());
  }
}

TEST(TopK, LongRowsTakeASecondDispatchAndScratch) {
  for (const auto& [columns, k, stages] : {std::tuple{2048u, 32u, 1u},
                                           {256u, 16u, 1u},
                                           {2048u, 64u, 1u},
                                           {2049u, 32u, 2u},
                                           {262144u, 64u, 2u}}) {
    const TopK op = {.columns = columns, .k = k, .max_rows = 1};
    EXPECT_EQ(top_k_routes(op).size(), stages) << columns;
    EXPECT_EQ(top_k_partials_bytes(op) > 0, stages == 2) << columns;
    for (const Route& route : top_k_routes(op)) EXPECT_LE(route.grid.groups, 64u);
  }
}

TEST(TopK, RefusesWhatItsKernelCannotCompute) {
  const gpu::Buffer step = test::upload(Step{.rows = 1});
  const gpu::Buffer x = test::poisoned(4096 * 4), scratch = test::poisoned(4096);
  const gpu::Buffer values = test::poisoned(256), indices = test::poisoned(256);
  const TopK good = {.columns = 4096,
                     .k = 32,
                     .step = step.view(),
                     .x = x.view(),
                     .partials = scratch.view(),
                     .values = values.view(),
                     .indices = indices.view(),
                     .max_rows = 1};
  gpu::CommandList commands(test::test_device());
  EXPECT_TRUE(record(commands, good));
  const auto refused = [&](auto change) {
    TopK bad = good;
    change(bad);
    return !record(commands, bad);
  };
  EXPECT_TRUE(refused([](TopK& op) { op.k = 0; }));
  EXPECT_TRUE(refused([](TopK& op) { op.k = 65; }));
  EXPECT_TRUE(refused([](TopK& op) { op.columns = 31; }));    // fewer than k
  EXPECT_TRUE(refused([](TopK& op) { op.columns = 4097; }));  // more than x has
  EXPECT_TRUE(refused([](TopK& op) { op.partials = {}; }));
  EXPECT_TRUE(refused([](TopK& op) { op.values.bytes = 124; }));
  EXPECT_TRUE(refused([](TopK& op) { op.indices.bytes = 124; }));
  EXPECT_TRUE(refused([](TopK& op) { op.max_rows = 2; }));
}

}  // namespace
}  // namespace tandem::ops
