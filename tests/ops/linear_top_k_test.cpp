// The largest values of a small product on the GPU against its references.
#include "ops/linear_top_k/linear_top_k.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "ops/harness.h"
#include "ops/linear/linear.h"
#include "ops/row_product.h"
#include "ops/untouched.h"
#include "support/compare.h"
#include "support/device.h"

namespace tandem::ops {
namespace {

using spec::WeightType;

struct Top {
  std::vector<float> values;
  std::vector<uint32_t> indices;
};

// Of the first `rows` rows; what lies beyond must stay poison.
Top on_gpu(const test::TestMatrix& weights, const std::vector<float>& x, uint32_t k, uint32_t rows,
           uint32_t lanes) {
  const auto max_rows = static_cast<uint32_t>(x.size() / weights.columns);
  const test::GpuMatrix matrix = test::upload(weights);
  const gpu::Buffer step = test::upload(Step{.rows = rows}), input = test::upload(x);
  const gpu::Buffer values = test::poisoned(uint64_t{max_rows} * k * 4);
  const gpu::Buffer indices = test::poisoned(uint64_t{max_rows} * k * 4);
  gpu::CommandList commands(test::test_device());
  test::expect_success(record(commands, LinearTopK{.weights = matrix.matrix,
                                                   .k = k,
                                                   .lanes = lanes,
                                                   .step = step.view(),
                                                   .x = input.view(),
                                                   .values = values.view(),
                                                   .indices = indices.view(),
                                                   .max_rows = max_rows}));
  test::run(commands, {.rows = max_rows});
  Top top = {test::download(values.view()), test::download_as<uint32_t>(indices.view())};
  EXPECT_TRUE(test::untouched(std::span<const float>(top.values).subspan(rows * k)));
  EXPECT_TRUE(test::untouched(std::span<const uint32_t>(top.indices).subspan(rows * k)));
  top.values.resize(rows * k), top.indices.resize(rows * k);
  return top;
}

struct Case {
  WeightType type;
  uint32_t n;
  uint32_t columns;
  uint32_t k;
  const char* why;
  uint32_t lanes = 0;
};

const Case cases[] = {
    {WeightType::q4_0, 256, 128, 16, "atlas' centroids"},
    {WeightType::q4_0, 256, 128, 16, "lanes", 8},
    {WeightType::q8_0, 1024, 64, 32, "the most rows"},
    {WeightType::f16, 4, 32, 4, "a whole row, sorted"},
    {WeightType::f32, 20, 96, 1, "the largest alone", 2},
    {WeightType::q4_0, 64, 2080, 64, "more than a tile of columns"},
};

TEST(LinearTopK, AgreesWithTheReferences) {
  for (const Case& c : cases) {
    constexpr uint32_t rows = 2;
    const test::TestMatrix weights = test::random_matrix(c.type, c.n, c.columns, 1);
    const auto x = test::random_floats((rows + 1) * c.columns, 2);
    std::vector<float> product(rows * c.n), values(rows * c.k);
    std::vector<uint32_t> indices(rows * c.k);
    linear_reference(weights.host(), Epilogue::none, 0, rows, x, {}, product);
    linear_top_k_reference(weights.host(), c.k, rows, x, values, indices);
    const Top top = on_gpu(weights, x, c.k, rows, c.lanes);
    EXPECT_TRUE(test::close(top.values, values, 3e-6)) << c.why;
    // Two products may be nearer to each other than to their reference.
    for (size_t i = 0; i < indices.size(); ++i) {
      const float chosen = product[i / c.k * c.n + top.indices[i]];
      EXPECT_NEAR(chosen, values[i], 1e-4) << c.why << ", " << i;
    }
  }
}

// Rows of equal weights have equal products.
TEST(LinearTopK, TheLowestRowsWinTies) {
  constexpr uint32_t n = 96, columns = 32, k = 20;
  const auto three = test::random_floats(3 * columns, 1), x = test::random_floats(columns, 2);
  std::vector<float> rows(n * columns);
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = three[i % three.size()];
  const test::TestMatrix weights = test::quantize(WeightType::f32, n, columns, rows);
  std::vector<float> values(k);
  std::vector<uint32_t> indices(k);
  linear_top_k_reference(weights.host(), k, 1, x, values, indices);
  EXPECT_EQ(on_gpu(weights, x, k, 1, 4).indices, indices);
}

TEST(LinearTopK, AStepOfNoRowsWritesNothing) {
  const auto weights = test::random_matrix(WeightType::q4_0, 64, 64, 1);
  EXPECT_TRUE(on_gpu(weights, test::random_floats(64, 2), 8, 0, 0).indices.empty());
}

TEST(LinearTopK, PaysForSmallMatricesThatItCanCompute) {
  const auto pays = [](uint32_t rows, uint32_t columns) {
    const auto matrix = test::upload(test::random_matrix(WeightType::f16, rows, columns, 1));
    return pays_in_one_workgroup(matrix.matrix);
  };
  EXPECT_TRUE(pays(256, 128));
  EXPECT_TRUE(pays(128, 512));
  EXPECT_FALSE(pays(256, 288));  // too many weights
  EXPECT_FALSE(pays(254, 64));   // no whole quads
  EXPECT_FALSE(pays(1028, 32));  // too many rows
  EXPECT_FALSE(pays(256, 40));   // no whole blocks
}

TEST(LinearTopK, RefusesWhatItsKernelCannotCompute) {
  const test::GpuMatrix matrix = test::upload(test::random_matrix(WeightType::q4_0, 64, 64, 1));
  const gpu::Buffer step = test::upload(Step{.rows = 1}), x = test::poisoned(2 * 64 * 4);
  const gpu::Buffer values = test::poisoned(2 * 16 * 4), indices = test::poisoned(2 * 16 * 4);
  const LinearTopK good = {.weights = matrix.matrix,
                           .k = 16,
                           .step = step.view(),
                           .x = x.view(),
                           .values = values.view(),
                           .indices = indices.view(),
                           .max_rows = 2};
  gpu::CommandList commands(test::test_device());
  EXPECT_TRUE(record(commands, good));
  const auto refused = [&](auto change) {
    LinearTopK bad = good;
    change(bad);
    return !record(commands, bad);
  };
  EXPECT_TRUE(refused([](LinearTopK& op) { op.k = 0; }));
  EXPECT_TRUE(refused([](LinearTopK& op) { op.k = 65; }));
  EXPECT_TRUE(refused([](LinearTopK& op) { op.k = 17; }));  // more than values have
  EXPECT_TRUE(refused([](LinearTopK& op) { op.lanes = 3; }));
  EXPECT_TRUE(refused([](LinearTopK& op) { op.max_rows = 3; }));
  EXPECT_TRUE(refused([](LinearTopK& op) { op.weights.columns = 48; }));
  EXPECT_TRUE(refused([](LinearTopK& op) { op.weights.parts.clear(); }));
  EXPECT_TRUE(refused([](LinearTopK& op) { op.indices.bytes = 124; }));
}

}  // namespace
}  // namespace tandem::ops
