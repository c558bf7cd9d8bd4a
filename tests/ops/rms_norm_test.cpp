// RMS norm on the GPU against its reference in double.
#include "ops/rms_norm/rms_norm.h"

#include <gtest/gtest.h>

#include "ops/harness.h"
#include "ops/untouched.h"
#include "support/compare.h"
#include "support/device.h"

namespace tandem::ops {
namespace {

constexpr float epsilon = 1e-6f;
constexpr uint32_t max_rows = 8;

// Norms the first `rows` rows of x [max_rows][columns]; returns all of y. An empty weight is none.
std::vector<float> norm(uint32_t columns, uint32_t rows, std::span<const float> x,
                        const std::vector<float>& weight) {
  gpu::Device& device = test::test_device();
  const gpu::Buffer step = test::upload(Step{.rows = rows});
  const gpu::Buffer input = test::upload(x);
  const gpu::Buffer weights = test::upload(weight.empty() ? std::vector<float>(columns) : weight);
  const gpu::Buffer y = test::poisoned(uint64_t{max_rows} * columns * sizeof(float));
  gpu::CommandList commands(device);
  test::expect_success(
      record(commands, RmsNorm{.columns = columns,
                               .epsilon = epsilon,
                               .step = step.view(),
                               .x = input.view(),
                               .weight = weight.empty() ? gpu::View{} : weights.view(),
                               .y = y.view(),
                               .max_rows = max_rows}));
  test::run(commands, {.rows = max_rows});
  return test::download(y.view());
}

std::vector<float> expected(uint32_t columns, std::span<const float> x,
                            const std::vector<float>& weight) {
  std::vector<float> y(x.size());
  rms_norm_reference(columns, epsilon, x, weight, y);
  return y;
}

struct Case {
  uint32_t columns;
  uint32_t rows;
  float magnitude;
  bool weighted;
  const char* why;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.why; }

class RmsNormCases : public ::testing::TestWithParam<Case> {};

// A sum of n squares in f32 is good to about log2(n) + n / 256 roundings of 6e-8, and the root
// halves that.
constexpr double tolerance = 1e-6;

TEST_P(RmsNormCases, AgreesWithTheReferenceAndWritesOnlyLiveRows) {
  const Case& c = GetParam();
  const auto x = test::random_floats(size_t{max_rows} * c.columns, c.columns, c.magnitude);
  const auto weight = c.weighted ? test::random_floats(c.columns, 2) : std::vector<float>{};
  const std::vector<float> y = norm(c.columns, c.rows, x, weight);
  const size_t live = size_t{c.rows} * c.columns;
  EXPECT_TRUE(test::close(std::span(y).first(live),
                          expected(c.columns, std::span(x).first(live), weight), tolerance));
  EXPECT_TRUE(test::untouched(std::span(y).subspan(live)));
}

INSTANTIATE_TEST_SUITE_P(
    All, RmsNormCases,
    ::testing::Values(Case{1, 1, 1, true, "one column"}, Case{32, 3, 1, true, "a narrow row"},
                      Case{256, 8, 1, true, "one column for each invocation, all rows"},
                      Case{257, 2, 1, true, "one column more than invocations"},
                      Case{1000, 3, 1, false, "no weight, no power of two"},
                      Case{1536, 1, 1, true, "E2B"}, Case{6144, 2, 1, true, "the widest"},
                      Case{256, 2, 1e5f, true, "squares of 1e10"},
                      Case{512, 2, 1e5f, false, "squares of 1e10 without weight"},
                      Case{64, 2, 1e-3f, true, "as small as epsilon"},
                      Case{64, 2, 0, true, "zeros: epsilon keeps them finite"},
                      Case{64, 0, 1, true, "a stopped step writes nothing"}));

TEST(RmsNorm, OneLargeValueAmongOnesIsNotAbsorbed) {
  for (bool weighted : {false, true}) {
    std::vector<float> x(size_t{max_rows} * 256, 1.0f);
    x[100] = 888;
    const std::vector<float> weight(weighted ? 256 : 0, 1.0f);
    const std::vector<float> y = norm(256, 1, x, weight);
    // mean = (888^2 + 255) / 256, so y = 888 / 55.509 and 1 / 55.509.
    EXPECT_NEAR(y[100], 15.9974, 1e-3);
    EXPECT_NEAR(y[0], 0.0180151, 1e-6);
    EXPECT_TRUE(test::close(std::span(y).first(256), expected(256, std::span(x).first(256), weight),
                            tolerance));
  }
}

TEST(RmsNorm, ARowHasTheSameBitsWhateverRowsAreBesideIt) {
  constexpr uint32_t columns = 1536;
  const auto x = test::random_floats(size_t{max_rows} * columns, 3);
  const auto weight = test::random_floats(columns, 4);
  const std::vector<float> seven = norm(columns, 7, x, weight);
  const std::vector<float> three = norm(columns, 3, x, weight);
  EXPECT_TRUE(
      test::same_bits(std::span(three).first(3 * columns), std::span(seven).first(3 * columns)));
  for (uint32_t row = 0; row < 7; ++row) {
    std::vector<float> alone(x);
    std::copy_n(&x[size_t{row} * columns], columns, alone.begin());
    const std::vector<float> one = norm(columns, 1, alone, weight);
    EXPECT_TRUE(test::same_bits(std::span(one).first(columns),
                                std::span(seven).subspan(size_t{row} * columns, columns)));
  }
}

TEST(RmsNorm, RefusesViewsSmallerThanTheirShape) {
  gpu::Device& device = test::test_device();
  const gpu::Buffer step = test::upload(Step{.rows = 1});
  const gpu::Buffer small = test::poisoned(31 * sizeof(float));
  const gpu::Buffer x = test::poisoned(32 * sizeof(float));
  const gpu::Buffer y = test::poisoned(32 * sizeof(float));
  gpu::CommandList commands(device);
  const RmsNorm good = {.columns = 32,
                        .epsilon = epsilon,
                        .step = step.view(),
                        .x = x.view(),
                        .weight = x.view(),
                        .y = y.view(),
                        .max_rows = 1};
  EXPECT_TRUE(record(commands, good));
  for (gpu::View RmsNorm::*view : {&RmsNorm::x, &RmsNorm::weight, &RmsNorm::y}) {
    RmsNorm bad = good;
    bad.*view = small.view();
    EXPECT_FALSE(record(commands, bad));
  }
}

TEST(RmsNorm, WritesLaneOrder) {
  constexpr uint32_t columns = 96, rows = 2;
  const auto x = test::random_floats(rows * columns, 1);
  const gpu::Buffer step = test::upload(Step{.rows = rows}), input = test::upload(x);
  const gpu::Buffer y = test::poisoned(rows * columns * sizeof(float));
  const gpu::Buffer in_lanes = test::poisoned(rows * columns * sizeof(float));
  RmsNorm op{.columns = columns,
             .epsilon = epsilon,
             .step = step.view(),
             .x = input.view(),
             .weight = {},
             .y = y.view(),
             .max_rows = rows};
  gpu::CommandList commands(test::test_device());
  test::expect_success(record(commands, op));
  op.y = in_lanes.view(), op.y_in_lanes = true;
  test::expect_success(record(commands, op));
  test::run(commands, {.rows = rows});
  EXPECT_TRUE(test::same_bits(test::download(in_lanes.view()),
                              test::in_lane_order(test::download(y.view()), columns)));
  op.columns = 48;
  EXPECT_FALSE(record(commands, op));
}

}  // namespace
}  // namespace tandem::ops
