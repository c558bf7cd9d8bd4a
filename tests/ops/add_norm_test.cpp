// The residual step on the GPU against its reference in double.
#include "ops/add_norm/add_norm.h"

#include <gtest/gtest.h>

#include "ops/harness.h"
#include "ops/untouched.h"
#include "support/compare.h"
#include "support/device.h"

namespace tandem::ops {
namespace {

constexpr float epsilon = 1e-6f;
constexpr uint32_t max_rows = 8;
constexpr float scalar = 0.375f;

struct Inputs {
  std::vector<float> x, h;  // [max_rows][columns]
  std::vector<float> weight, next_weight;
};

Inputs make_inputs(uint32_t columns, float magnitude) {
  const size_t elements = size_t{max_rows} * columns;
  return {test::random_floats(elements, 1, magnitude), test::random_floats(elements, 2, magnitude),
          test::random_floats(columns, 3), test::random_floats(columns, 4)};
}

struct Outputs {
  std::vector<float> h, y;
};

Outputs on_gpu(uint32_t columns, uint32_t rows, const Inputs& in, bool scaled, bool next) {
  gpu::Device& device = test::test_device();
  const gpu::Buffer step = test::upload(Step{.rows = rows});
  const gpu::Buffer x = test::upload(in.x), h = test::upload(in.h);
  const gpu::Buffer weight = test::upload(in.weight), next_weight = test::upload(in.next_weight);
  const gpu::Buffer factor = test::upload(std::vector{scalar});
  const gpu::Buffer y = test::poisoned(in.x.size() * sizeof(float));
  gpu::CommandList commands(device);
  test::expect_success(
      record(commands, AddNorm{.columns = columns,
                               .epsilon = epsilon,
                               .step = step.view(),
                               .x = x.view(),
                               .weight = weight.view(),
                               .scalar = scaled ? factor.view() : gpu::View{},
                               .h = h.view(),
                               .next_weight = next ? next_weight.view() : gpu::View{},
                               .y = y.view(),
                               .max_rows = max_rows}));
  EXPECT_EQ(commands.dispatch_count(), 1u);
  test::run(commands, {.rows = max_rows});
  return {test::download(h.view()), test::download(y.view())};
}

Outputs expected(uint32_t columns, uint32_t rows, const Inputs& in, bool scaled, bool next) {
  const size_t live = size_t{rows} * columns;
  Outputs out{in.h, std::vector<float>(next ? live : 0)};
  add_norm_reference(columns, epsilon, std::span(in.x).first(live), in.weight,
                     scaled ? scalar : 1.0f, std::span(out.h).first(live),
                     next ? std::span<const float>(in.next_weight) : std::span<const float>(),
                     out.y);
  return out;
}

struct Case {
  uint32_t columns;
  uint32_t rows;
  float magnitude;
  bool scaled;
  bool next;
  const char* why;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.why; }

class AddNormCases : public ::testing::TestWithParam<Case> {};

TEST_P(AddNormCases, AgreesWithTheReferenceAndWritesOnlyLiveRows) {
  const Case& c = GetParam();
  const Inputs in = make_inputs(c.columns, c.magnitude);
  const Outputs actual = on_gpu(c.columns, c.rows, in, c.scaled, c.next);
  const Outputs wanted = expected(c.columns, c.rows, in, c.scaled, c.next);
  // Two norms, each good to 1e-6 (see rms_norm_test), and one sum.
  EXPECT_TRUE(test::close(actual.h, wanted.h, 1e-6));
  const size_t live = size_t{c.rows} * c.columns;
  EXPECT_TRUE(test::same_bits(std::span(actual.h).subspan(live), std::span(in.h).subspan(live)));
  EXPECT_TRUE(test::close(std::span(actual.y).first(wanted.y.size()), wanted.y, 2e-6));
  EXPECT_TRUE(test::untouched(std::span(actual.y).subspan(wanted.y.size())));
}

INSTANTIATE_TEST_SUITE_P(
    All, AddNormCases,
    ::testing::Values(
        Case{256, 3, 1, true, true, "all parts"}, Case{256, 3, 1, false, true, "no scalar"},
        Case{256, 3, 1, true, false, "no next norm"}, Case{256, 3, 1, false, false, "neither"},
        Case{32, 8, 1, true, true, "narrow, all rows"},
        Case{1000, 2, 1, true, true, "no power of two"}, Case{1536, 1, 1, true, true, "E2B"},
        Case{8192, 2, 1, true, true, "the widest"},
        Case{512, 2, 1e5f, true, true, "magnitudes of 1e5"}, Case{64, 2, 0, true, true, "zeros"},
        Case{64, 0, 1, true, true, "a stopped step writes nothing"},
        Case{64, 0, 1, true, false, "a stopped step without next norm"}));

TEST(AddNorm, ARowHasTheSameBitsWhateverRowsAreBesideIt) {
  constexpr uint32_t columns = 1000;
  const Inputs in = make_inputs(columns, 1);
  for (bool next : {false, true}) {
    const Outputs seven = on_gpu(columns, 7, in, true, next);
    const Outputs three = on_gpu(columns, 3, in, true, next);
    const auto row_of = [&](const std::vector<float>& values, uint32_t row) {
      return std::span(values).subspan(size_t{row} * columns, columns);
    };
    for (uint32_t row = 0; row < 7; ++row) {
      Inputs alone = in;
      std::copy_n(row_of(in.x, row).begin(), columns, alone.x.begin());
      std::copy_n(row_of(in.h, row).begin(), columns, alone.h.begin());
      const Outputs one = on_gpu(columns, 1, alone, true, next);
      EXPECT_TRUE(test::same_bits(row_of(one.h, 0), row_of(seven.h, row)));
      EXPECT_TRUE(test::same_bits(row_of(three.h, row), row_of(row < 3 ? seven.h : in.h, row)));
      if (!next) continue;
      EXPECT_TRUE(test::same_bits(row_of(one.y, 0), row_of(seven.y, row)));
      if (row >= 3) continue;
      EXPECT_TRUE(test::same_bits(row_of(three.y, row), row_of(seven.y, row)));
    }
  }
}

TEST(AddNorm, RefusesColumnsThatItsKernelDoesNotKeep) {
  const gpu::Buffer step = test::upload(Step{.rows = 1});
  const gpu::Buffer data = test::poisoned(65536), h = test::poisoned(65536),
                    y = test::poisoned(65536);
  for (auto [columns, is_taken] : {std::pair{8192u, true}, {1002u, false}, {8196u, false}}) {
    gpu::CommandList commands(test::test_device());
    const AddNorm op{.columns = columns,
                     .epsilon = epsilon,
                     .step = step.view(),
                     .x = data.view(),
                     .weight = data.view(),
                     .h = h.view(),
                     .y = y.view(),
                     .max_rows = 1};
    EXPECT_EQ(record(commands, op).has_value(), is_taken) << columns;
  }
}

TEST(AddNorm, WritesEveryFormat) {
  constexpr uint32_t columns = 1120, rows = 2;
  const auto x = test::random_floats(rows * columns, 1);
  const gpu::Buffer step = test::upload(Step{.rows = rows}), input = test::upload(x);
  const gpu::Buffer h = test::upload(x), same_h = test::upload(x), third_h = test::upload(x);
  const gpu::Buffer y = test::poisoned(rows * columns * sizeof(float));
  const gpu::Buffer in_lanes = test::poisoned(rows * columns * sizeof(float));
  const gpu::Buffer as_int8 = test::poisoned(rows * columns * sizeof(float));
  AddNorm op{.columns = columns,
             .epsilon = epsilon,
             .step = step.view(),
             .x = input.view(),
             .weight = input.view(),
             .scalar = {},
             .h = h.view(),
             .next_weight = input.view(),
             .y = y.view(),
             .max_rows = rows};
  gpu::CommandList commands(test::test_device());
  test::expect_success(record(commands, op));
  op.h = same_h.view(), op.y = in_lanes.view(), op.y_format = RowFormat::lanes;
  test::expect_success(record(commands, op));
  op.h = third_h.view(), op.y = as_int8.view(), op.y_format = RowFormat::int8;
  test::expect_success(record(commands, op));
  test::run(commands, {.rows = rows});
  const std::vector<float> values = test::download(y.view());
  EXPECT_TRUE(
      test::same_bits(test::download(in_lanes.view()), test::in_lane_order(values, columns)));
  EXPECT_TRUE(test::is_int8(test::download_as<uint32_t>(as_int8.view()), columns, values));
  op.columns = 48;
  EXPECT_FALSE(record(commands, op));
}

}  // namespace
}  // namespace tandem::ops
