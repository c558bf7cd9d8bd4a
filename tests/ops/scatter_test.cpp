// The scatter on the GPU, by both routes, against its reference: bits must agree.
#include "ops/scatter/scatter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "ops/argmax/argmax.h"
#include "ops/harness.h"
#include "ops/untouched.h"
#include "support/compare.h"
#include "support/device.h"

namespace tandem::ops {
namespace {

struct Case {
  uint32_t count;
  uint32_t columns;
  uint32_t rows;
  std::optional<float> fill;
  const char* why;
};

const Case cases[] = {
    {4096, 262144, 1, {}, "E2B's selected tokens"},
    {512, 8192, 1, {}, "atlas' selected tokens"},
    {512, 8192, 3, {}, "each row has its own least value"},
    {65, 4097, 2, -2.5f, "a given fill, one more than fits a workgroup"},
    {1, 1, 1, {}, "one value that covers all"},
    {1, 10, 2, {}, "one value"},
    {300, 300, 1, {}, "a permutation"},
};

// Distinct columns of each row, in any order.
std::vector<uint32_t> distinct(uint32_t count, uint32_t columns, uint32_t rows) {
  std::mt19937 generator(count);
  std::vector<uint32_t> all(columns), index;
  for (uint32_t row = 0; row < rows; ++row) {
    std::iota(all.begin(), all.end(), 0);
    std::shuffle(all.begin(), all.end(), generator);
    index.insert(index.end(), all.begin(), all.begin() + count);
  }
  return index;
}

std::vector<float> on_gpu(const Case& c, bool unique, const std::vector<float>& values,
                          const std::vector<uint32_t>& index, uint32_t live) {
  const gpu::Buffer step = test::upload(Step{.rows = live});
  const gpu::Buffer value_buffer = test::upload(values), index_buffer = test::upload(index);
  const gpu::Buffer y = test::poisoned(uint64_t{c.rows} * c.columns * 4);
  gpu::CommandList commands(test::test_device());
  test::expect_success(record(commands, Scatter{.count = c.count,
                                                .columns = c.columns,
                                                .fill = c.fill,
                                                .unique = unique,
                                                .step = step.view(),
                                                .values = value_buffer.view(),
                                                .index = index_buffer.view(),
                                                .y = y.view(),
                                                .max_rows = c.rows}));
  test::run(commands, {.rows = c.rows});
  auto result = test::download(y.view());
  EXPECT_TRUE(test::untouched(std::span<const float>(result).subspan(size_t{live} * c.columns)));
  result.resize(size_t{live} * c.columns);
  return result;
}

std::vector<float> on_host(const Case& c, const std::vector<float>& values,
                           const std::vector<uint32_t>& index, uint32_t live) {
  std::vector<float> y(size_t{live} * c.columns);
  const size_t count = size_t{live} * c.count;
  scatter_reference(c.count, c.columns, c.fill, std::span(values).first(count),
                    std::span(index).first(count), y);
  return y;
}

TEST(Scatter, BothRoutesAgreeWithTheReference) {
  for (const Case& c : cases) {
    const auto values = test::random_floats(size_t{c.rows} * c.count, c.columns, 20);
    const auto index = distinct(c.count, c.columns, c.rows);
    for (bool unique : {true, false}) {
      for (uint32_t live : {c.rows, c.rows - 1}) {
        EXPECT_TRUE(test::same_bits(on_gpu(c, unique, values, index, live),
                                    on_host(c, values, index, live)))
            << c.why << ", " << live << " rows, unique " << unique;
      }
    }
  }
}

TEST(Scatter, OfEqualIndicesTheLastOneCounts) {
  // 4096 values for 90 columns: each comes dozens of times, within and across workgroups.
  const Case c = {4096, 90, 2, {}, ""};
  const auto values = test::random_floats(2 * 4096, 3);
  std::vector<uint32_t> index(2 * 4096);
  std::mt19937 generator(5);
  for (uint32_t& column : index)
    column = static_cast<uint32_t>(generator() % 80);  // ten columns stay filled
  const auto y = on_gpu(c, false, values, index, 2);
  EXPECT_TRUE(test::same_bits(y, on_host(c, values, index, 2)));
  EXPECT_EQ(y[89], *std::min_element(values.begin(), values.begin() + 4096) - 1);
  EXPECT_TRUE(test::same_bits(y, on_gpu(c, false, values, index, 2)));
}

TEST(Scatter, IndicesOutsideTheRowAreIgnored) {
  // The first index would be the other row's first column.
  const Case c = {4, 50, 2, 7.0f, ""};
  const std::vector<float> values = {1, 2, 3, 4, 5, 6, 7, 8};
  const std::vector<uint32_t> index = {50, 49, 0xffffffff, 0, 51, 1, 0x80000000, 2};
  for (bool unique : {true, false}) {
    const auto y = on_gpu(c, unique, values, index, 2);
    std::vector<float> expected(100, 7.0f);
    expected[49] = 2, expected[0] = 4, expected[50 + 1] = 6, expected[50 + 2] = 8;
    EXPECT_TRUE(test::same_bits(y, expected));
  }
}

// The ordered head: greedy choice takes the gathered logits, sampling the scattered row.
TEST(Scatter, TheRowHasTheArgmaxOfItsValues) {
  const Case c = {512, 8192, 3, {}, ""};
  auto values = test::random_floats(size_t{c.rows} * c.count, 9, 4);
  for (float& value : values) value = std::round(value);  // with ties
  const auto tokens = distinct(c.count, c.columns, c.rows);
  const gpu::Buffer step = test::upload(Step{.rows = c.rows});
  const gpu::Buffer row = test::upload(on_gpu(c, true, values, tokens, c.rows));
  const gpu::Buffer partials = test::poisoned(argmax_partials_bytes(c.columns, c.rows));
  const gpu::Buffer index = test::poisoned(c.rows * 4);
  gpu::CommandList commands(test::test_device());
  test::expect_success(record(commands, Argmax{.columns = c.columns,
                                               .step = step.view(),
                                               .logits = row.view(),
                                               .partials = partials.view(),
                                               .index = index.view(),
                                               .max_rows = c.rows}));
  test::run(commands, {.rows = c.rows});
  std::vector<uint32_t> expected(c.rows);
  argmax_reference(c.count, values, expected, tokens);
  EXPECT_EQ(test::download_as<uint32_t>(index.view()), expected);
}

TEST(Scatter, RefusesWhatItsKernelsCannotCompute) {
  const gpu::Buffer step = test::upload(Step{.rows = 1});
  const gpu::Buffer values = test::poisoned(64 * 4), index = test::poisoned(64 * 4);
  const gpu::Buffer y = test::poisoned(1000 * 4);
  const Scatter good = {.count = 64,
                        .columns = 1000,
                        .step = step.view(),
                        .values = values.view(),
                        .index = index.view(),
                        .y = y.view(),
                        .max_rows = 1};
  gpu::CommandList commands(test::test_device());
  EXPECT_TRUE(record(commands, good));
  const auto refused = [&](auto change) {
    Scatter bad = good;
    change(bad);
    return !record(commands, bad);
  };
  EXPECT_TRUE(refused([](Scatter& op) { op.count = 0; }));
  EXPECT_TRUE(refused([](Scatter& op) { op.columns = 0; }));
  EXPECT_TRUE(refused([](Scatter& op) { op.count = 65; }));
  EXPECT_TRUE(refused([](Scatter& op) { op.columns = 1001; }));
  EXPECT_TRUE(refused([](Scatter& op) { op.index.bytes = 252; }));
  EXPECT_TRUE(refused([](Scatter& op) { op.max_rows = 2; }));
}

}  // namespace
}  // namespace tandem::ops
