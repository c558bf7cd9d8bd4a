// Rows of f32 to int8 on the GPU against the definition, and what is made of rows that are not
// finite.
#include "ops/quantize/quantize.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "ops/harness.h"
#include "support/compare.h"

namespace tandem::ops {
namespace {

// All words of x after the kernel ran on its first `live` rows.
std::vector<uint32_t> quantized(uint32_t columns, uint32_t live, std::span<const float> rows) {
  const auto max_rows = static_cast<uint32_t>(rows.size() / columns);
  const gpu::Buffer step = test::upload(Step{.rows = live}), x = test::upload(rows);
  gpu::CommandList commands(test::test_device());
  test::expect_success(record(
      commands,
      Quantize{.columns = columns, .step = step.view(), .x = x.view(), .max_rows = max_rows}));
  test::run(commands, {.rows = max_rows});
  return test::download_as<uint32_t>(x.view());
}

TEST(QuantizeReference, IsTheDefinition) {
  std::vector<float> x(64);
  x[0] = 1, x[1] = -254, x[2] = 3, x[3] = 5, x[31] = 127;
  const std::vector<uint32_t> words = int8_rows_reference(64, x);
  // d = 2: 0.5, 1.5 and 2.5 go to the even neighbour, 63.5 to 64.
  std::vector<float> expected(64);
  expected[0] = 0, expected[1] = -254, expected[2] = 4, expected[3] = 4, expected[31] = 128;
  EXPECT_EQ(words[0], 0x02028100u);
  EXPECT_EQ(words[8 + 3], 0x40000000u);
  EXPECT_EQ(std::bit_cast<float>(words[16]), 2);
  EXPECT_EQ(static_cast<int32_t>(words[17]), 0 - 127 + 2 + 2 + 64);
  EXPECT_EQ(int8_values(64, words), expected);
  quantize_reference(64, x);
  EXPECT_EQ(x, expected);
}

TEST(Quantize, IsTheReference) {
  for (uint32_t columns : {32u, 96u, 1536u, 12288u, 16384u}) {
    auto rows = test::random_floats(size_t{3} * columns, columns);
    // Units of zeros, of tiny and of large values.
    std::fill_n(rows.begin(), 32, 0.0f);
    for (uint32_t i = 0; i < 32; ++i) rows[columns + i] *= 1e-36f, rows[2 * columns + i] *= 1e30f;
    const std::vector<uint32_t> words = quantized(columns, 3, rows);
    EXPECT_TRUE(test::is_int8(words, columns, rows)) << columns;
  }
}

TEST(Quantize, LeavesRowsThatAreNotLive) {
  const auto rows = test::random_floats(3 * 64, 1);
  const std::vector<uint32_t> words = quantized(64, 1, rows);
  EXPECT_TRUE(test::is_int8(std::span(words).first(64), 64, std::span(rows).first(64)));
  for (size_t i = 64; i < words.size(); ++i) {
    ASSERT_EQ(words[i], std::bit_cast<uint32_t>(rows[i])) << i;
  }
}

TEST(Quantize, WhatIsNotFiniteStaysSo) {
  for (float value :
       {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
        std::numeric_limits<float>::quiet_NaN()}) {
    auto rows = test::random_floats(64, 1);
    rows[40] = value;
    const std::vector<uint32_t> words = quantized(64, 1, rows);
    EXPECT_TRUE(std::isfinite(std::bit_cast<float>(words[16]))) << value;
    EXPECT_FALSE(std::isfinite(std::bit_cast<float>(words[18]))) << value;
    EXPECT_FALSE(std::isfinite(std::bit_cast<float>(int8_rows_reference(64, rows)[18]))) << value;
  }
}

TEST(Quantize, RefusesRowsOfNoUnitsAndOnesThatItsKernelDoesNotKeep) {
  const gpu::Buffer step = test::upload(Step{.rows = 1}), x = test::poisoned(131072);
  for (auto [columns, is_taken] : {std::pair{16384u, true}, {48u, false}, {16416u, false}}) {
    gpu::CommandList commands(test::test_device());
    const Quantize op{.columns = columns, .step = step.view(), .x = x.view(), .max_rows = 1};
    EXPECT_EQ(record(commands, op).has_value(), is_taken) << columns;
  }
}

}  // namespace
}  // namespace tandem::ops
