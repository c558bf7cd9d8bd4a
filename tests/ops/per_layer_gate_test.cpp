// The gate of the per-layer input on the GPU against its reference in double.
#include "ops/per_layer_gate/per_layer_gate.h"

#include <gtest/gtest.h>

#include "ops/harness.h"
#include "ops/untouched.h"
#include "support/compare.h"
#include "support/device.h"

namespace tandem::ops {
namespace {

using spec::WeightType;

constexpr float epsilon = 1e-6f;

struct Case {
  WeightType type;
  uint32_t width;
  uint32_t hidden;
  const char* why;
  uint32_t lanes = 0;  // 0: the software adapter's choice, 1
  uint32_t rows = 1;
  uint32_t max_rows = 3;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.why; }

struct Data {
  test::TestMatrix weights;
  std::vector<float> h, delta;  // [max_rows][hidden]
  std::vector<float> weight;
  std::vector<float> times;  // [max_rows][width]
};

Data random_data(const Case& c) {
  const size_t elements = size_t{c.max_rows} * c.hidden;
  return {test::random_matrix(c.type, c.width, c.hidden, 1), test::random_floats(elements, 2),
          test::random_floats(elements, 3, 5), test::random_floats(c.hidden, 4),
          test::random_floats(size_t{c.max_rows} * c.width, 5)};
}

// An operator with the buffers it is bound to.
struct Bound {
  PerLayerGate op;
  test::GpuMatrix weights;
  gpu::Buffer step, h, delta, weight, times, sum, y;
};

Bound bind(const Case& c, const Data& data) {
  Bound bound{{},
              test::upload(data.weights),
              test::upload(Step{.rows = c.rows}),
              test::upload(data.h),
              test::upload(data.delta),
              test::upload(data.weight),
              test::upload(data.times),
              test::poisoned(uint64_t{c.max_rows} * c.hidden * sizeof(float)),
              test::poisoned(uint64_t{c.max_rows} * c.width * sizeof(float))};
  bound.op = {.weights = bound.weights.matrix,
              .epsilon = epsilon,
              .lanes = c.lanes,
              .step = bound.step.view(),
              .h = bound.h.view(),
              .delta = bound.delta.view(),
              .weight = bound.weight.view(),
              .times = bound.times.view(),
              .sum = bound.sum.view(),
              .y = bound.y.view(),
              .max_rows = c.max_rows};
  return bound;
}

struct Outputs {
  std::vector<float> sum, y;
};

Outputs on_gpu(const Case& c, const Data& data) {
  const Bound bound = bind(c, data);
  gpu::CommandList commands(test::test_device());
  test::expect_success(record(commands, bound.op));
  test::run(commands, {.rows = c.max_rows});
  return {test::download(bound.sum.view()), test::download(bound.y.view())};
}

class PerLayerGateCases : public ::testing::TestWithParam<Case> {};

TEST_P(PerLayerGateCases, AgreesWithTheReferenceAndWritesOnlyLiveRows) {
  const Case& c = GetParam();
  const Data data = random_data(c);
  const size_t live = size_t{c.rows} * c.width, read = size_t{c.rows} * c.hidden;
  std::vector<float> expected_sum(read), expected(live);
  per_layer_gate_reference(data.weights.host(), epsilon, c.rows, std::span(data.h).first(read),
                           std::span(data.delta).first(read), data.weight, data.times, expected_sum,
                           expected);
  const auto [sum, y] = on_gpu(c, data);
  // As in add_norm_test.
  EXPECT_TRUE(test::close(std::span(sum).first(read), expected_sum, 1e-6));
  EXPECT_TRUE(test::untouched(std::span(sum).subspan(read)));
  // Sums as in linear_test, of two products.
  EXPECT_TRUE(test::close(std::span(y).first(live), expected, 5e-6));
  EXPECT_TRUE(test::untouched(std::span(y).subspan(live)));
}

INSTANTIATE_TEST_SUITE_P(
    All, PerLayerGateCases,
    ::testing::Values(Case{WeightType::q4_0, 256, 1536, "E2B", 64, 3},
                      Case{WeightType::q4_0, 32, 256, "the atlas", 16, 2},
                      Case{WeightType::q4_0, 30, 256, "rows that are no whole quads", 8},
                      Case{WeightType::q8_0, 20, 96, "lanes that share unevenly", 8, 2},
                      Case{WeightType::f16, 20, 96, "f16", 4, 3},
                      Case{WeightType::f32, 20, 96, "f32", 2, 3},
                      Case{WeightType::q4_0, 20, 32, "a block", 1, 3},
                      Case{WeightType::q4_0, 20, 32, "a stopped step writes nothing", 1, 0}));

TEST(PerLayerGate, ARowHasTheSameBitsAloneAndAmongOthers) {
  const Case three{WeightType::q4_0, 64, 256, "", 16, 3};
  const Data data = random_data(three);
  const Outputs together = on_gpu(three, data);
  for (uint32_t row = 0; row < 3; ++row) {
    const auto rest = [&](const std::vector<float>& values, size_t width) {
      return std::vector<float>(values.begin() + row * width, values.end());
    };
    Case one = three;
    one.rows = one.max_rows = 1;
    const Data alone{data.weights, rest(data.h, 256), rest(data.delta, 256), data.weight,
                     rest(data.times, 64)};
    const auto [sum, y] = on_gpu(one, alone);
    EXPECT_TRUE(test::same_bits(sum, std::span(together.sum).subspan(row * 256, 256)));
    EXPECT_TRUE(test::same_bits(y, std::span(together.y).subspan(row * 64, 64)));
  }
}

TEST(PerLayerGate, RefusesWhatItsKernelCannotCompute) {
  const Case good{WeightType::q4_0, 64, 64, ""};
  const std::pair<const char*, void (*)(PerLayerGate&)> refusals[] = {
      {"h is too small", [](PerLayerGate& op) { op.h.bytes -= 4; }},
      {"delta is too small", [](PerLayerGate& op) { op.delta.bytes -= 4; }},
      {"weight is too small", [](PerLayerGate& op) { op.weight.bytes -= 4; }},
      {"times is too small", [](PerLayerGate& op) { op.times.bytes -= 4; }},
      {"sum is too small", [](PerLayerGate& op) { op.sum.bytes -= 4; }},
      {"y is too small", [](PerLayerGate& op) { op.y.bytes -= 4; }},
      {"no whole blocks", [](PerLayerGate& op) { op.weights.columns = 48; }},
      {"lanes that do not halve", [](PerLayerGate& op) { op.lanes = 12; }},
      {"too many lanes", [](PerLayerGate& op) { op.lanes = 512; }},
      {"two parts", [](PerLayerGate& op) { op.weights.parts.push_back(op.weights.parts[0]); }}};
  for (const auto& [why, spoil] : refusals) {
    Bound bound = bind(good, random_data(good));
    gpu::CommandList commands(test::test_device());
    EXPECT_TRUE(record(commands, bound.op)) << why;
    spoil(bound.op);
    EXPECT_FALSE(record(commands, bound.op)) << why;
  }
}

}  // namespace
}  // namespace tandem::ops
