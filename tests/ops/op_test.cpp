// Rows of weights, parts of matrices, and the text of a route.
#include "ops/op.h"

#include <gtest/gtest.h>

#include "ops/harness.h"
#include "support/compare.h"

namespace tandem::ops {
namespace {

using spec::WeightType;

std::vector<std::byte> bytes(std::initializer_list<int> values) {
  std::vector<std::byte> result;
  for (int value : values) result.push_back(std::byte(value));
  return result;
}

std::vector<float> row_of(const HostMatrix& matrix, uint32_t row) {
  std::vector<float> out(matrix.columns);
  dequantize_row(matrix, row, out);
  return out;
}

TEST(DequantizeRow, Q4PutsLowNibblesInTheFirstHalfOfABlock) {
  std::vector<std::byte> values(32, std::byte{0x88});
  values[16] = std::byte{0x0f};                         // row 1: column 0 is 15, column 16 is 0
  values[31] = std::byte{0x18};                         // column 15 is 8, column 31 is 1
  const auto scales = bytes({0x00, 0x3c, 0x00, 0xc0});  // 1, -2
  const HostMatrix matrix{WeightType::q4_0, 2, 32, values, scales};
  std::vector<float> expected(32, 0.0f);
  expected[0] = -14, expected[16] = 16, expected[31] = 14;
  EXPECT_TRUE(test::close(row_of(matrix, 1), expected, 0));
  EXPECT_TRUE(test::close(row_of(matrix, 0), std::vector<float>(32, 0.0f), 0));
}

TEST(DequantizeRow, Q8IsSignedAndTakesItsOwnBlocksScale) {
  std::vector<std::byte> values(64, std::byte{0});
  values[0] = std::byte{0x80}, values[63] = std::byte{0x7f};
  const auto scales = bytes({0x00, 0x3c, 0x00, 0x38});  // 1, 0.5
  const HostMatrix matrix{WeightType::q8_0, 1, 64, values, scales};
  std::vector<float> expected(64, 0.0f);
  expected[0] = -128, expected[63] = 63.5f;
  EXPECT_TRUE(test::close(row_of(matrix, 0), expected, 0));
}

TEST(DequantizeRow, FloatsAreExact) {
  const std::vector<float> weights = {1, -2, 0.5f, 65504, 0x1p-14f, 3, 4, 5};
  for (WeightType type : {WeightType::f16, WeightType::f32}) {
    const test::TestMatrix matrix = test::quantize(type, 2, 4, weights);
    EXPECT_TRUE(test::same_bits(row_of(matrix.host(), 1), std::span(weights).subspan(4)));
  }
}

TEST(DequantizeRow, RandomMatricesLieWithinHalfAStepOfTheirSource) {
  const std::vector<float> source = test::random_floats(4 * 96, 1);
  for (auto [type, step] : {std::pair{WeightType::q4_0, 1.0 / 8}, {WeightType::q8_0, 1.0 / 127}}) {
    const test::TestMatrix matrix = test::quantize(type, 4, 96, source);
    for (uint32_t row = 0; row < 4; ++row) {
      // q4_0 has no +8, so a value opposite to the largest may be a whole step off.
      EXPECT_TRUE(test::close(row_of(matrix.host(), row), std::span(source).subspan(row * 96, 96),
                              1.01 * step));
    }
  }
}

// Parts of 64 rows and 3 blocks a row.
Matrix matrix_in_parts(uint32_t rows) {
  Matrix matrix{WeightType::q4_0, rows, 96, {}};
  for (uint32_t first = 0, buffer = 1; first < rows; first += 64, buffer += 2) {
    const uint32_t count = std::min(64u, rows - first);
    matrix.parts.push_back({first, count, {buffer, 0, count * 48}, {buffer + 1, 0, count * 6}});
  }
  return matrix;
}

TEST(FirstRows, CutsThePartThatHoldsTheLastRow) {
  const Matrix cut = matrix_in_parts(192).first_rows(101);
  EXPECT_EQ(cut.rows, 101u);
  ASSERT_EQ(cut.parts.size(), 2u);
  EXPECT_EQ(cut.parts[0].rows, 64u);
  EXPECT_EQ(cut.parts[1].first_row, 64u);
  EXPECT_EQ(cut.parts[1].rows, 37u);
  EXPECT_EQ(cut.parts[1].values.bytes, 37u * 48);
  EXPECT_EQ(cut.parts[1].scales.bytes, 224u);  // 37 * 6 = 222, in whole words
}

TEST(FirstRows, KeepsWholePartsAndNeverMakesRows) {
  EXPECT_EQ(matrix_in_parts(192).first_rows(128).parts.size(), 2u);
  const Matrix all = matrix_in_parts(100).first_rows(1000);
  EXPECT_EQ(all.rows, 100u);
  ASSERT_EQ(all.parts.size(), 2u);
  EXPECT_EQ(all.parts[1].values.bytes, 36u * 48);
}

TEST(Describe, NamesTheKernelAndEveryConstant) {
  const Route route{"linear_row", {{"LANES", 16}, {"EPSILON", 1e-6f}, {"ROWS", 16777217}}, {}};
  EXPECT_EQ(describe(route), "linear_row LANES=16 EPSILON=1e-06 ROWS=16777217");
}

TEST(CheckSize, RefusesAViewTooSmallForItsShape) {
  EXPECT_TRUE(check_size("linear", "x", {1, 0, 64}, 64));
  const auto refused = check_size("linear", "x", {1, 0, 60}, 64);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("linear: x"), std::string::npos);
}

}  // namespace
}  // namespace tandem::ops
