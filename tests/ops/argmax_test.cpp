// Argmax on the GPU, with and without the subgroups tier, against its reference.
#include "ops/argmax/argmax.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "ops/harness.h"
#include "ops/untouched.h"
#include "support/device.h"

namespace tandem::ops {
namespace {

// The kernel has a variant for adapters with subgroups; both run on one adapter.
gpu::Device& device_of(bool subgroups) {
  static const std::unique_ptr<gpu::Device> base =
      test::open_device({.disabled = {.subgroups = true}});
  return subgroups ? test::test_device() : *base;
}

class ArgmaxTiers : public ::testing::TestWithParam<bool> {
 protected:
  // The index of each of the first `rows` rows; what lies beyond must stay poison.
  std::vector<uint32_t> argmax(uint32_t columns, uint32_t rows, const std::vector<float>& logits) {
    gpu::Device& device = device_of(GetParam());
    const uint32_t max_rows = static_cast<uint32_t>(logits.size() / columns);
    const gpu::Buffer step = test::upload(std::vector{Step{.rows = rows}}, device);
    const gpu::Buffer input = test::upload(logits, device);
    const gpu::Buffer partials = test::poisoned(argmax_partials_bytes(columns, max_rows), device);
    const gpu::Buffer index = test::poisoned(max_rows * sizeof(uint32_t), device);
    gpu::CommandList commands(device);
    test::expect_success(record(commands, Argmax{.columns = columns,
                                                 .step = step.view(),
                                                 .logits = input.view(),
                                                 .partials = partials.view(),
                                                 .index = index.view(),
                                                 .max_rows = max_rows}));
    test::run(commands, {.rows = max_rows});
    auto result = test::download_as<uint32_t>(index.view(), device);
    EXPECT_TRUE(test::untouched(std::span<const uint32_t>(result).subspan(rows)));
    result.resize(rows);
    return result;
  }
};

INSTANTIATE_TEST_SUITE_P(Subgroups, ArgmaxTiers, ::testing::Bool());

TEST_P(ArgmaxTiers, AgreesWithTheReference) {
  for (uint32_t columns : {1u, 2u, 31u, 255u, 2047u, 2048u, 2049u, 5000u, 8192u, 262144u}) {
    const uint32_t max_rows = columns > 10000 ? 2 : 8;
    const auto logits = test::random_floats(size_t{max_rows} * columns, columns, 30);
    std::vector<uint32_t> expected(max_rows);
    argmax_reference(columns, logits, expected);
    for (uint32_t rows : {0u, 1u, max_rows - 1, max_rows}) {
      const std::vector<uint32_t> wanted(expected.begin(), expected.begin() + rows);
      EXPECT_EQ(argmax(columns, rows, logits), wanted)
          << columns << " columns, " << rows << " rows";
    }
  }
}

TEST_P(ArgmaxTiers, TheLowestIndexWinsTies) {
  constexpr uint32_t columns = 20000;
  const std::vector<std::vector<uint32_t>> ties = {
      {0, 1},                // neighbours
      {3, 259},              // the same invocation
      {300, 301, 511},       // one tile
      {2047, 2048},          // across a border of tiles
      {2049, 4096, 19999},   // several tiles, the last one short
      {19998, 19999},        // the last tile
      {5, 10005, 15005, 0},  // unordered
  };
  for (float top : {7.5f, -1.0f, 0.0f, 1e30f, -1e-30f}) {
    std::vector<float> logits(ties.size() * columns, top - 1 - std::abs(top));
    std::vector<uint32_t> expected;
    for (size_t row = 0; row < ties.size(); ++row) {
      for (uint32_t column : ties[row]) logits[row * columns + column] = top;
      expected.push_back(*std::min_element(ties[row].begin(), ties[row].end()));
    }
    EXPECT_EQ(argmax(columns, static_cast<uint32_t>(ties.size()), logits), expected) << top;
  }
}

TEST_P(ArgmaxTiers, EqualRowsGiveTheFirstColumn) {
  EXPECT_EQ(argmax(262144, 1, std::vector<float>(262144, -3.0f)), std::vector<uint32_t>{0});
}

TEST_P(ArgmaxTiers, ZerosOfBothSignsTie) {
  std::vector<float> logits(2 * 5000, -1.0f);
  logits[4000] = -0.0f, logits[4500] = 0.0f;
  logits[5000 + 10] = 0.0f, logits[5000 + 4990] = -0.0f;
  EXPECT_EQ(argmax(5000, 2, logits), (std::vector<uint32_t>{4000, 10}));
}

TEST_P(ArgmaxTiers, OrdersValuesOfAllMagnitudes) {
  const std::vector<float> ascending = {-3e38f, -1.5f, -1.25f, -1e-30f, 0.0f, 1e-30f, 1.25f, 3e38f};
  for (size_t count = 1; count <= ascending.size(); ++count) {
    std::vector<float> logits(3000, ascending[0]);
    for (size_t i = 0; i < count; ++i) logits[100 + 300 * (7 - i)] = ascending[i];
    const uint32_t expected = count == 1 ? 0 : static_cast<uint32_t>(100 + 300 * (8 - count));
    EXPECT_EQ(argmax(3000, 1, logits), std::vector<uint32_t>{expected});
  }
}

}  // namespace
}  // namespace tandem::ops
