// Queries from a normed input on the GPU against their reference in double.
#include "ops/q_project/q_project.h"

#include <gtest/gtest.h>

#include "ops/harness.h"
#include "ops/qkv_rope/qkv_rope.h"
#include "ops/untouched.h"
#include "support/compare.h"
#include "support/device.h"

namespace tandem::ops {
namespace {

using spec::WeightType;

constexpr float epsilon = 1e-6f;

// The product as in linear_add_norm_test, then a norm, two products and a sum (qkv_rope_test).
constexpr double tolerance = 3e-6;

struct Case {
  WeightType type;
  uint32_t heads;
  uint32_t head_dim;
  uint32_t columns;
  spec::Rope rope;
  const char* why;
  uint32_t lanes = 0;  // 0: the software adapter's choice, 1
  uint32_t position = 1003;
  uint32_t rows = 1;
  uint32_t max_rows = 2;

  size_t q_size() const { return size_t{heads} * head_dim; }
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.why; }

struct Data {
  test::TestMatrix weights;
  std::vector<float> x;  // [max_rows][columns]
  std::vector<float> q_norm;
};

Data random_data(const Case& c) {
  return {test::random_matrix(c.type, c.heads * c.head_dim, c.columns, 1),
          test::random_floats(size_t{c.max_rows} * c.columns, 2),
          test::random_floats(c.head_dim, 3)};
}

// An operator with the buffers it is bound to.
struct Bound {
  QProject op;
  test::GpuMatrix weights;
  gpu::Buffer step, x, q_norm, angles, q;
};

Bound bind(const Case& c, const Data& data) {
  Bound bound{{},
              test::upload(data.weights),
              test::upload(Step{.position = c.position, .rows = c.rows}),
              test::upload(data.x),
              test::upload(data.q_norm),
              test::upload(rope_angles(c.rope, c.head_dim, c.position + c.max_rows)),
              test::poisoned(c.max_rows * c.q_size() * sizeof(float))};
  bound.op = {.weights = bound.weights.matrix,
              .head_dim = c.head_dim,
              .rotated_pairs = c.rope.rotated_pairs,
              .epsilon = epsilon,
              .lanes = c.lanes,
              .step = bound.step.view(),
              .x = bound.x.view(),
              .q_norm = bound.q_norm.view(),
              .angles = bound.angles.view(),
              .q = bound.q.view(),
              .max_rows = c.max_rows};
  return bound;
}

std::vector<float> on_gpu(const Case& c, const Data& data) {
  const Bound bound = bind(c, data);
  gpu::CommandList commands(test::test_device());
  test::expect_success(record(commands, bound.op));
  EXPECT_EQ(commands.dispatch_count(), 1u);
  test::run(commands, {.rows = c.max_rows});
  return test::download(bound.q.view());
}

class QProjectCases : public ::testing::TestWithParam<Case> {};

TEST_P(QProjectCases, AgreesWithTheReferenceAndWritesOnlyLiveRows) {
  const Case& c = GetParam();
  const Data data = random_data(c);
  const std::vector<float> actual = on_gpu(c, data);
  std::vector<float> wanted(c.rows * c.q_size());
  q_project_reference(data.weights.host(), c.rope, epsilon, c.position, c.rows, data.x, data.q_norm,
                      wanted);
  EXPECT_TRUE(test::close(std::span(actual).first(wanted.size()), wanted, tolerance));
  EXPECT_TRUE(test::untouched(std::span(actual).subspan(wanted.size())));
}

constexpr auto q4 = WeightType::q4_0, q8 = WeightType::q8_0, f16 = WeightType::f16,
               f32 = WeightType::f32;

INSTANTIATE_TEST_SUITE_P(
    Shapes, QProjectCases,
    ::testing::Values(Case{q4, 4, 64, 128, {1e4, 32}, "atlas: sliding", 4},
                      Case{q4, 4, 128, 128, {1e6, 16}, "atlas: full, partly rotated", 4},
                      Case{q4, 4, 256, 256, {1e4, 128}, "E2B: sliding", 8},
                      Case{q4, 4, 512, 256, {1e6, 64}, "E2B: full, partly rotated", 8},
                      Case{q8, 4, 512, 256, {1e6, 64}, "E2B: full in q8_0"},
                      Case{q4, 1, 1024, 64, {1e4, 512}, "the widest head", 2},
                      Case{q4, 2, 64, 2144, {1e4, 32}, "more columns than a tile", 8},
                      Case{q4, 2, 8, 32, {1e4, 3}, "the smallest, an odd count of pairs"}));

INSTANTIATE_TEST_SUITE_P(
    Types, QProjectCases,
    ::testing::Values(Case{q4, 3, 40, 96, {1e4, 20}, "q4_0", 2, 7, 3, 4},
                      Case{q8, 3, 40, 96, {1e4, 20}, "q8_0", 2, 7, 3, 4},
                      Case{f16, 3, 40, 96, {1e4, 20}, "f16", 2, 7, 3, 4},
                      Case{f32, 3, 40, 96, {1e4, 20}, "f32", 2, 7, 3, 4},
                      Case{q4, 4, 64, 128, {1e4, 32}, "position 0", 0, 0, 2, 2},
                      Case{q4, 4, 64, 128, {1e4, 32}, "a late position", 16, 8000, 2, 2},
                      Case{q4, 4, 64, 128, {1e4, 32}, "a stopped step", 0, 3, 0, 3}));

TEST(QProject, ARowHasTheSameBitsAloneAndAmongOthers) {
  for (auto type : {q4, q8, f16, f32}) {
    const Case four{type, 3, 72, 160, {1e4, 36}, "", 4, 20, 4, 4};
    const Data data = random_data(four);
    const std::vector<float> together = on_gpu(four, data);
    for (uint32_t row = 0; row < 4; ++row) {
      Case one = four;
      one.position += row, one.rows = one.max_rows = 1;
      Data alone = data;
      alone.x.assign(&data.x[row * size_t{four.columns}],
                     &data.x[row * size_t{four.columns}] + 160);
      EXPECT_TRUE(test::same_bits(on_gpu(one, alone),
                                  std::span(together).subspan(row * four.q_size(), four.q_size())))
          << spec::name(type) << " row " << row;
    }
  }
}

// Both columns of W x = (3, 0, 0, 0, 4, 0, 0, 0): a head of mean square 25/8 whose pair 0 turns by
// one radian at position 1.
TEST(QProject, TurnsTheNormedProduct) {
  std::vector<float> w(8 * 32);
  w[0] = 3, w[4 * 32 + 1] = 4;
  std::vector<float> x(32, 1.0f);
  const Data data{test::quantize(f32, 8, 32, w), x, std::vector<float>(8, 1.0f)};
  const Case c{f32, 1, 8, 32, {1e4, 4}, "", 0, 1, 1, 1};
  std::vector<float> reference(8);
  q_project_reference(data.weights.host(), c.rope, epsilon, 1, 1, data.x, data.q_norm, reference);
  for (const std::vector<float>& q : {on_gpu(c, data), reference}) {
    EXPECT_NEAR(q[0], (3 * 0.54030231 - 4 * 0.84147098) / 1.7677670, 3e-6);
    EXPECT_NEAR(q[4], (4 * 0.54030231 + 3 * 0.84147098) / 1.7677670, 3e-6);
    for (size_t i : {1, 2, 3, 5, 6, 7}) EXPECT_EQ(q[i], 0.0f) << i;
  }
}

TEST(QProject, RefusesWhatItsKernelCannotCompute) {
  struct Refusal {
    const char* why;
    void (*spoil)(QProject&);
  };
  const Refusal refusals[] = {
      {"x is too small", [](auto& op) { op.x.bytes -= 4; }},
      {"q is too small", [](auto& op) { op.q.bytes -= 4; }},
      {"q_norm is too small", [](auto& op) { op.q_norm.bytes -= 4; }},
      {"angles of less than a position", [](auto& op) { op.angles.bytes = 4; }},
      {"quants are too small", [](auto& op) { op.weights.parts[0].values.bytes -= 4; }},
      {"scales are too small", [](auto& op) { op.weights.parts[0].scales.bytes -= 4; }},
      {"scales are missing", [](auto& op) { op.weights.parts[0].scales = {}; }},
      {"more rows than the buffers have", [](auto& op) { op.max_rows += 1; }},
      {"head_dim is 0", [](auto& op) { op.head_dim = 0; }},
      {"head_dim is no multiple of 8", [](auto& op) { op.head_dim = 4; }},
      {"head_dim is over 1024", [](auto& op) { op.head_dim = 1032; }},
      {"no whole heads", [](auto& op) { op.head_dim = 24; }},
      {"no pairs", [](auto& op) { op.rotated_pairs = 0; }},
      {"more pairs than there are", [](auto& op) { op.rotated_pairs = 9; }},
      {"no whole blocks", [](auto& op) { op.weights.columns = 48; }},
      {"two parts", [](auto& op) { op.weights.parts.push_back(op.weights.parts[0]); }},
      {"lanes that do not halve", [](auto& op) { op.lanes = 3; }}};
  const Case c{q4, 4, 16, 64, {1e4, 8}, ""};
  for (const Refusal& refusal : refusals) {
    Bound bound = bind(c, random_data(c));
    gpu::CommandList commands(test::test_device());
    EXPECT_TRUE(record(commands, bound.op)) << refusal.why;
    refusal.spoil(bound.op);
    EXPECT_FALSE(record(commands, bound.op)) << refusal.why;
  }
}

TEST(QProjectRoute, TellsItsShapeAndItsBytes) {
  const QProject op = {
      .weights = {q4, 2048, 256, {}}, .head_dim = 512, .rotated_pairs = 64, .max_rows = 1};
  const Route route = q_project_route(op, {});
  EXPECT_EQ(label(route), "q_project q4_0 4x512x256 lanes=2");
  EXPECT_EQ(route.grid.groups, 4u);
  EXPECT_EQ(route.traffic->fixed, 2048u * (128 + 16) + 2048);
  EXPECT_EQ(route.traffic->per_row, 1024u + 512 + 8192);
}

}  // namespace
}  // namespace tandem::ops
