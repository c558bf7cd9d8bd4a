// The product with its residual step on the GPU against its reference in double.
#include "ops/linear_add_norm/linear_add_norm.h"

#include <gtest/gtest.h>

#include "ops/harness.h"
#include "ops/untouched.h"
#include "support/compare.h"
#include "support/device.h"

namespace tandem::ops {
namespace {

using spec::WeightType;

constexpr float epsilon = 1e-6f;
constexpr float scalar = 0.375f;

// Of v, as in linear_test: a chain of 512 additions, the blocks of a tile in one lane, strays by
// 1.4e-6. The norms keep that and add 1e-6 between them (add_norm_test).
constexpr double tolerance = 3e-6;

struct Case {
  WeightType type;
  uint32_t hidden;
  uint32_t columns;
  const char* why;
  bool add = true;
  bool scaled = true;
  uint32_t lanes = 0;  // 0: the software adapter's choice, 1
  uint32_t rows = 1;
  uint32_t max_rows = 2;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.why; }

struct Data {
  test::TestMatrix weights;
  std::vector<float> x, h;  // [max_rows][...]
  std::vector<float> weight, next_weight;
};

Data random_data(const Case& c) {
  return {test::random_matrix(c.type, c.hidden, c.columns, 1),
          test::random_floats(size_t{c.max_rows} * c.columns, 2),
          test::random_floats(size_t{c.max_rows} * c.hidden, 3), test::random_floats(c.hidden, 4),
          test::random_floats(c.hidden, 5)};
}

struct Outputs {
  std::vector<float> h, y;
};

// An operator with the buffers it is bound to.
struct Bound {
  LinearAddNorm op;
  test::GpuMatrix weights;
  gpu::Buffer step, x, weight, scalar, h, next_weight, y;
};

Bound bind(const Case& c, const Data& data) {
  Bound bound{{},
              test::upload(data.weights),
              test::upload(Step{.rows = c.rows}),
              test::upload(data.x),
              test::upload(data.weight),
              test::upload(std::vector{scalar}),
              test::upload(data.h),
              test::upload(data.next_weight),
              test::poisoned(data.h.size() * sizeof(float))};
  bound.op = {.weights = bound.weights.matrix,
              .epsilon = epsilon,
              .lanes = c.lanes,
              .step = bound.step.view(),
              .x = bound.x.view(),
              .weight = c.add ? bound.weight.view() : gpu::View{},
              .scalar = c.scaled ? bound.scalar.view() : gpu::View{},
              .h = bound.h.view(),
              .next_weight = bound.next_weight.view(),
              .y = bound.y.view(),
              .max_rows = c.max_rows};
  return bound;
}

Outputs on_gpu(const Case& c, const Data& data) {
  const Bound bound = bind(c, data);
  gpu::CommandList commands(test::test_device());
  test::expect_success(record(commands, bound.op));
  EXPECT_EQ(commands.dispatch_count(), 1u);
  test::run(commands, {.rows = c.max_rows});
  return {test::download(bound.h.view()), test::download(bound.y.view())};
}

Outputs expected(const Case& c, const Data& data) {
  const size_t live = size_t{c.rows} * c.hidden;
  Outputs out{{data.h.begin(), data.h.begin() + live}, std::vector<float>(live)};
  linear_add_norm_reference(data.weights.host(), epsilon, c.rows, data.x,
                            c.add ? data.weight : std::vector<float>(), c.scaled ? scalar : 1.0f,
                            out.h, data.next_weight, out.y);
  return out;
}

class LinearAddNormCases : public ::testing::TestWithParam<Case> {};

TEST_P(LinearAddNormCases, AgreesWithTheReferenceAndWritesOnlyLiveRows) {
  const Case& c = GetParam();
  const Data data = random_data(c);
  const Outputs actual = on_gpu(c, data);
  const Outputs wanted = expected(c, data);
  const size_t live = size_t{c.rows} * c.hidden;
  EXPECT_TRUE(test::close(std::span(actual.h).first(live), wanted.h, tolerance));
  EXPECT_TRUE(test::close(std::span(actual.y).first(live), wanted.y, tolerance));
  EXPECT_TRUE(test::same_bits(std::span(actual.h).subspan(live), std::span(data.h).subspan(live)));
  EXPECT_TRUE(test::untouched(std::span(actual.y).subspan(live)));
}

constexpr auto q4 = WeightType::q4_0, q8 = WeightType::q8_0, f16 = WeightType::f16,
               f32 = WeightType::f32;

INSTANTIATE_TEST_SUITE_P(
    Shapes, LinearAddNormCases,
    ::testing::Values(
        Case{q4, 128, 512, "atlas: pre_projection", false, false, 8},
        Case{q4, 128, 256, "atlas: attention_output of a sliding layer, down", true, true, 8},
        Case{q4, 128, 512, "atlas: attention_output of a full layer", true, false, 8},
        Case{q4, 256, 3072, "E2B: pre_projection", false, false, 8},
        Case{q4, 256, 1024, "E2B: attention_output of a sliding layer", true, false, 8},
        Case{q4, 256, 2048, "E2B: attention_output of a full layer, down", true, true, 8},
        Case{q8, 256, 2048, "E2B: down in q8_0", true, true, 0},
        Case{q4, 256, 5120, "E4B: pre_projection", false, false, 8},
        Case{q4, 1024, 96, "as wide as it can be", true, true, 8},
        Case{q4, 1024, 64, "as wide as it can be, without lanes"},
        Case{q4, 4, 32, "one block for four rows"},
        Case{q8, 4, 2080, "one unit in the second tile", true, true, 32}));

INSTANTIATE_TEST_SUITE_P(
    Types, LinearAddNormCases,
    ::testing::Values(Case{q4, 100, 96, "q4_0", true, true, 2, 3, 4},
                      Case{q8, 100, 96, "q8_0", true, true, 2, 3, 4},
                      Case{f16, 100, 96, "f16", true, true, 2, 3, 4},
                      Case{f32, 100, 96, "f32", true, true, 2, 3, 4},
                      Case{q4, 36, 224, "no scalar", true, false, 4, 2, 2},
                      Case{q4, 36, 224, "no residual", false, true, 4, 2, 2},
                      Case{f32, 36, 224, "neither", false, false, 1, 2, 2},
                      Case{q4, 132, 160, "more lanes than blocks", true, true, 32, 2, 2},
                      Case{q4, 64, 64, "a stopped step", true, true, 0, 0, 3},
                      Case{q4, 64, 64, "a stopped step without residual", false, true, 0, 0, 3}));

TEST(LinearAddNorm, ARowHasTheSameBitsAloneAndAmongOthers) {
  for (auto type : {q4, q8, f16, f32}) {
    const Case four{type, 132, 2176, "", true, true, 8, 4, 4};
    const Data data = random_data(four);
    const Outputs together = on_gpu(four, data);
    for (uint32_t row = 0; row < 4; ++row) {
      const auto row_of = [&](const std::vector<float>& values) {
        const size_t size = values.size() / 4;
        return std::vector<float>(values.begin() + row * size, values.begin() + (row + 1) * size);
      };
      Case one = four;
      one.rows = one.max_rows = 1;
      Data alone = data;
      alone.x = row_of(data.x), alone.h = row_of(data.h);
      const Outputs single = on_gpu(one, alone);
      EXPECT_TRUE(test::same_bits(single.h, row_of(together.h))) << spec::name(type) << row;
      EXPECT_TRUE(test::same_bits(single.y, row_of(together.y))) << spec::name(type) << row;
    }
  }
}

// W = ((1, 0, ...), (0, 2, ...), 0, 0): v = (1, 2 * -2, 0, 0), whose mean square is 17/4.
TEST(LinearAddNorm, ReferenceIsTheDefinition) {
  std::vector<float> w(4 * 32), x(32);
  w[0] = 1, w[32 + 1] = 2, x[0] = 1, x[1] = -2;
  const auto matrix = test::quantize(f32, 4, 32, w);
  const std::vector<float> weight = {1, 1, 1, 1}, next_weight = {1, 2, 3, 4};
  std::vector<float> h = {0, 0, 2, 0}, y(4);
  linear_add_norm_reference(matrix.host(), 0, 1, x, weight, 0.5f, h, next_weight, y);
  EXPECT_TRUE(test::close(h, std::vector<float>{0.2425356f, -0.9701425f, 1, 0}, 1e-6));
  EXPECT_TRUE(test::close(y, std::vector<float>{0.3429972f, -2.7439774f, 4.2426407f, 0}, 1e-6));
  linear_add_norm_reference(matrix.host(), 0, 1, x, {}, 1, h, next_weight, y);
  EXPECT_TRUE(test::close(h, std::vector<float>{1, -4, 0, 0}, 0));
  EXPECT_TRUE(test::close(y, std::vector<float>{0.4850713f, -3.8805700f, 0, 0}, 1e-6));
}

TEST(LinearAddNorm, RefusesWhatItsKernelCannotCompute) {
  struct Refusal {
    const char* why;
    void (*spoil)(LinearAddNorm&);
  };
  const Refusal refusals[] = {
      {"x is too small", [](auto& op) { op.x.bytes -= 4; }},
      {"h is too small", [](auto& op) { op.h.bytes -= 4; }},
      {"y is too small", [](auto& op) { op.y.bytes -= 4; }},
      {"weight is too small", [](auto& op) { op.weight.bytes -= 4; }},
      {"scalar is empty", [](auto& op) { op.scalar.bytes = 0; }},
      {"next_weight is too small", [](auto& op) { op.next_weight.bytes -= 4; }},
      {"next_weight is missing", [](auto& op) { op.next_weight = {}; }},
      {"quants are too small", [](auto& op) { op.weights.parts[0].values.bytes -= 4; }},
      {"scales are too small", [](auto& op) { op.weights.parts[0].scales.bytes -= 4; }},
      {"scales are missing", [](auto& op) { op.weights.parts[0].scales = {}; }},
      {"more rows than the buffers have", [](auto& op) { op.max_rows += 1; }},
      {"hidden is no multiple of 4", [](auto& op) { op.weights = op.weights.first_rows(62); }},
      {"hidden is 0", [](auto& op) { op.weights = op.weights.first_rows(0); }},
      {"hidden is over 1024", [](auto& op) { op.weights.rows = op.weights.parts[0].rows = 1028; }},
      {"no whole blocks", [](auto& op) { op.weights.columns = 48; }},
      {"no whole blocks of floats",
       [](auto& op) { op.weights.type = f32, op.weights.columns = 4; }},
      {"token ids", [](auto& op) { op.weights.type = WeightType::u32, op.weights.columns = 32; }},
      {"two parts", [](auto& op) { op.weights.parts.push_back(op.weights.parts[0]); }},
      {"no part", [](auto& op) { op.weights.parts.clear(); }},
      {"a part of the matrix", [](auto& op) { op.weights.parts[0].rows -= 4; }},
      {"lanes that do not halve", [](auto& op) { op.lanes = 12; }},
      {"more lanes than are tried", [](auto& op) { op.lanes = 64; }}};
  const Case c{q4, 64, 64, ""};
  for (const Refusal& refusal : refusals) {
    Bound bound = bind(c, random_data(c));
    gpu::CommandList commands(test::test_device());
    EXPECT_TRUE(record(commands, bound.op)) << refusal.why;
    refusal.spoil(bound.op);
    EXPECT_FALSE(record(commands, bound.op)) << refusal.why;
  }
}

TEST(LinearAddNormRoute, ManyLanesShareAFewRows) {
  const gpu::View bound{1, 0, 4};
  const auto text = [&](WeightType type, uint32_t hidden, uint32_t columns, bool software = false) {
    gpu::AdapterInfo adapter;
    adapter.software = software;
    return label(linear_add_norm_route(
        {.weights = {type, hidden, columns, {}}, .weight = bound, .max_rows = 1}, adapter));
  };
  EXPECT_EQ(text(q4, 256, 2048), "linear_add_norm q4_0 256x2048 add lanes=4");
  EXPECT_EQ(text(q8, 64, 2048), "linear_add_norm q8_0 64x2048 add lanes=16");
  EXPECT_EQ(text(q4, 4, 2048), "linear_add_norm q4_0 4x2048 add lanes=32");
  EXPECT_EQ(text(q4, 128, 96), "linear_add_norm q4_0 128x96 add lanes=2");
  EXPECT_EQ(text(q4, 256, 2048, true), "linear_add_norm q4_0 256x2048 add lanes=1");
}

TEST(LinearAddNormRoute, CountsTheBytesThatItMoves) {
  LinearAddNorm op = {.weights = {q4, 256, 2048, {}}, .max_rows = 1};
  gpu::Traffic traffic = linear_add_norm_route(op, {}).traffic.value();
  EXPECT_EQ(traffic.fixed, 256u * (1024 + 128) + 1024);
  EXPECT_EQ(traffic.per_row, 8192u + 2048);
  op.weight = {1, 0, 1024};
  traffic = linear_add_norm_route(op, {}).traffic.value();
  EXPECT_EQ(traffic.fixed, 256u * (1024 + 128) + 2048);
  EXPECT_EQ(traffic.per_row, 8192u + 3072);
}

}  // namespace
}  // namespace tandem::ops
