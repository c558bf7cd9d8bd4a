// The gathered product on the GPU against its reference, and against the full product.
#include "ops/gathered_linear/gathered_linear.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "ops/harness.h"
#include "ops/linear/linear.h"
#include "ops/untouched.h"
#include "support/compare.h"
#include "support/device.h"

namespace tandem::ops {
namespace {

using spec::WeightType;

constexpr WeightType types[] = {WeightType::q4_0, WeightType::q8_0, WeightType::f16,
                                WeightType::f32};

struct Case {
  uint32_t groups;
  uint32_t group_rows;
  uint32_t count;
  uint32_t columns;
  float softcap = 0;
};

std::vector<uint32_t> permutation(uint32_t size, uint32_t seed) {
  std::vector<uint32_t> result(size);
  std::iota(result.begin(), result.end(), 0);
  std::shuffle(result.begin(), result.end(), std::mt19937(seed));
  return result;
}

struct Scored {
  std::vector<float> y;
  std::vector<uint32_t> rows;
};

struct Input {
  test::TestMatrix weights;
  std::vector<float> x;
  std::vector<uint32_t> chosen;
  std::vector<uint32_t> ordering;
};

Input make_input(const Case& c, WeightType type) {
  const uint32_t rows = c.groups * c.group_rows;
  auto chosen = permutation(c.groups, 1);
  chosen.resize(c.count);
  return {test::random_matrix(type, rows, c.columns, rows + c.columns),
          test::random_floats(c.columns, 2), chosen, permutation(rows, 3)};
}

// Matrices are in parts of `part_rows` rows; 0: one part.
Scored on_gpu(const Case& c, const Input& input, uint32_t part_rows = 0, uint32_t live = 1) {
  const test::GpuMatrix weights = test::upload(input.weights, part_rows);
  const gpu::Buffer step = test::upload(Step{.position = 9, .rows = live});
  const gpu::Buffer x = test::upload(input.x), chosen = test::upload(input.chosen);
  const gpu::Buffer ordering = test::upload(input.ordering);
  const uint64_t bytes = uint64_t{c.count} * c.group_rows * 4;
  const gpu::Buffer y = test::poisoned(bytes), rows = test::poisoned(bytes);
  gpu::CommandList commands(test::test_device());
  test::expect_success(record(commands, GatheredLinear{.weights = weights.matrix,
                                                       .groups = c.groups,
                                                       .group_rows = c.group_rows,
                                                       .count = c.count,
                                                       .softcap = c.softcap,
                                                       .step = step.view(),
                                                       .x = x.view(),
                                                       .chosen = chosen.view(),
                                                       .ordering = ordering.view(),
                                                       .y = y.view(),
                                                       .rows = rows.view()}));
  test::run(commands);
  return {test::download(y.view()), test::download_as<uint32_t>(rows.view())};
}

Scored on_host(const Case& c, const Input& input) {
  const size_t outputs = size_t{c.count} * c.group_rows;
  Scored result = {std::vector<float>(outputs), std::vector<uint32_t>(outputs)};
  gathered_linear_reference(input.weights.host(), c.group_rows, c.softcap, input.x, input.chosen,
                            input.ordering, result.y, result.rows);
  return result;
}

// Sums of up to 512 products in f32, of values up to 1: within 1e-5 of the largest.
constexpr double tolerance = 1e-5;

void expect_reference(const Case& c, WeightType type) {
  const Input input = make_input(c, type);
  const Scored expected = on_host(c, input);
  const Scored actual = on_gpu(c, input);
  const auto what = fmt::format("{} of {} groups of {} x {}, {}", c.count, c.groups, c.group_rows,
                                c.columns, spec::name(type));
  EXPECT_TRUE(test::close(actual.y, expected.y, tolerance)) << what;
  EXPECT_EQ(actual.rows, expected.rows) << what;
}

TEST(GatheredLinear, AgreesForEveryTypeAndShape) {
  const Case cases[] = {
      {256, 32, 16, 128},    // atlas
      {24, 128, 7, 256},     // E2B's groups and columns
      {5, 3, 5, 32},         // all groups, none aligned
      {9, 7, 1, 96},         // one group, three blocks
      {6, 5, 2, 512, 1.5f},  // a softcap that saturates
      {1, 1, 1, 32},         // one weight row
  };
  for (const Case& c : cases) {
    for (WeightType type : types) expect_reference(c, type);
  }
  for (WeightType type : {WeightType::f16, WeightType::f32}) expect_reference({4, 6, 3, 44}, type);
}

// 2048 groups would only make the table larger.
TEST(GatheredLinear, E2BsHead) { expect_reference({256, 128, 32, 256}, WeightType::q4_0); }

TEST(GatheredLinear, PartsGiveTheBitsOfTheWhole) {
  const Case c = {20, 16, 6, 64};
  for (WeightType type : types) {
    const Input input = make_input(c, type);
    const Scored whole = on_gpu(c, input);
    for (uint32_t part_rows : {64u, 192u}) {
      const Scored parts = on_gpu(c, input, part_rows);
      EXPECT_TRUE(test::same_bits(parts.y, whole.y)) << spec::name(type);
      EXPECT_EQ(parts.rows, whole.rows);
    }
  }
}

TEST(GatheredLinear, ValuesAreThoseOfTheFullProduct) {
  const Case c = {16, 8, 4, 64};
  const Input input = make_input(c, WeightType::q8_0);
  std::vector<float> full(16 * 8);
  linear_reference(input.weights.host(), Epilogue::none, 0, 1, input.x, {}, full);
  const Scored scored = on_gpu(c, input);
  std::vector<float> expected;
  for (uint32_t row : scored.rows) expected.push_back(full[row]);
  EXPECT_TRUE(test::close(scored.y, expected, tolerance));
}

TEST(GatheredLinear, AStepOfNoRowsWritesNothing) {
  const Case c = {8, 8, 3, 32};
  const Scored scored = on_gpu(c, make_input(c, WeightType::q4_0), 0, 0);
  EXPECT_TRUE(test::untouched(std::span<const float>(scored.y)));
  EXPECT_TRUE(test::untouched(std::span<const uint32_t>(scored.rows)));
}

TEST(GatheredLinear, IndicesOutsideTheirTablesReadNothingOutside) {
  const Case c = {4, 8, 2, 32};
  Input input = make_input(c, WeightType::f32);
  input.chosen = {0xffffffff, 1};                          // the last group
  input.ordering[8] = 32, input.ordering[9] = 0xffffffff;  // of group 1: no such rows
  const Scored scored = on_gpu(c, input);
  for (uint32_t i = 0; i < 8; ++i) EXPECT_EQ(scored.rows[i], input.ordering[3 * 8 + i]);
  EXPECT_TRUE(test::untouched(std::span<const float>(scored.y).subspan(8, 2)));
  EXPECT_TRUE(test::untouched(std::span<const uint32_t>(scored.rows).subspan(8, 2)));
  EXPECT_EQ(scored.rows[10], input.ordering[10]);
}

TEST(GatheredLinear, RefusesWhatItsKernelCannotCompute) {
  const Case c = {8, 8, 4, 64};
  const Input input = make_input(c, WeightType::q4_0);
  const test::GpuMatrix weights = test::upload(input.weights);
  const gpu::Buffer step = test::upload(Step{.rows = 1});
  const gpu::Buffer x = test::upload(input.x), chosen = test::upload(input.chosen);
  const gpu::Buffer ordering = test::upload(input.ordering);
  const gpu::Buffer y = test::poisoned(32 * 4), rows = test::poisoned(32 * 4);
  const GatheredLinear good = {.weights = weights.matrix,
                               .groups = 8,
                               .group_rows = 8,
                               .count = 4,
                               .step = step.view(),
                               .x = x.view(),
                               .chosen = chosen.view(),
                               .ordering = ordering.view(),
                               .y = y.view(),
                               .rows = rows.view()};
  gpu::CommandList commands(test::test_device());
  EXPECT_TRUE(record(commands, good));
  const auto refused = [&](auto change) {
    GatheredLinear bad = good;
    change(bad);
    return !record(commands, bad);
  };
  EXPECT_TRUE(refused([](GatheredLinear& op) { op.count = 0; }));
  EXPECT_TRUE(refused([](GatheredLinear& op) { op.count = 9; }));
  EXPECT_TRUE(refused([](GatheredLinear& op) { op.count = 5; }));  // y is too small
  EXPECT_TRUE(refused([](GatheredLinear& op) { op.groups = 9; }));
  EXPECT_TRUE(refused([](GatheredLinear& op) { op.group_rows = 0; }));
  EXPECT_TRUE(refused([](GatheredLinear& op) { op.softcap = -1; }));
  EXPECT_TRUE(refused([](GatheredLinear& op) { op.weights.columns = 48; }));
  EXPECT_TRUE(refused([](GatheredLinear& op) { op.weights.columns = 96; }));
  EXPECT_TRUE(refused([](GatheredLinear& op) { op.weights.parts[0].rows = 65; }));
  EXPECT_TRUE(refused([](GatheredLinear& op) { op.weights.parts[0].scales.bytes = 4; }));
  EXPECT_TRUE(refused([](GatheredLinear& op) { op.x.bytes = 252; }));
  EXPECT_TRUE(refused([](GatheredLinear& op) { op.chosen.bytes = 12; }));
  EXPECT_TRUE(refused([](GatheredLinear& op) { op.ordering.bytes = 252; }));
  EXPECT_TRUE(refused([](GatheredLinear& op) { op.rows.bytes = 124; }));
}

}  // namespace
}  // namespace tandem::ops
