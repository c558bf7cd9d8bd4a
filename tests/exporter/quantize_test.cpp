// Rows converted to every type, decoded by code of the test's own.
#include "exporter/quantize.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "base/half.h"
#include "exporter/decode.h"
#include "support/compare.h"

namespace tandem::test {
namespace {

using exporter::RowReport;
using spec::WeightType;

constexpr WeightType all_types[] = {WeightType::q4_0, WeightType::q8_0, WeightType::f16,
                                    WeightType::f32};

struct Converted {
  RowReport report;
  std::vector<std::byte> values;
  std::vector<std::byte> scales;
  std::vector<float> decoded;
};

Converted convert(WeightType type, const std::vector<float>& row) {
  const auto planes = spec::planes(type, static_cast<uint32_t>(row.size()));
  Converted result;
  result.values.resize(planes[0].bytes_per_row);
  result.scales.resize(planes.size() > 1 ? planes[1].bytes_per_row : 0);
  result.report = exporter::convert_row(type, row, result.values, result.scales);
  result.decoded = decode_row(type, result.values, result.scales);
  return result;
}

std::vector<float> normal_row(uint32_t seed, size_t columns, float spread) {
  std::mt19937 random(seed);
  std::normal_distribution<float> distribution(0, spread);
  std::vector<float> row(columns);
  for (float& x : row) x = distribution(random);
  return row;
}

float largest(std::span<const float> row) {
  float result = 0;
  for (const float x : row) result = std::max(result, std::abs(x));
  return result;
}

TEST(Quantize, Q4BytesFollowGgml) {
  // The extreme is -8, so d = 1; then 2.5 -> q 11 (trunc of 11.0), -0.5 -> 8 and 7.6 -> 15 (not
  // 16).
  std::vector<float> row(32, 0.0f);
  row[0] = -8;
  row[1] = 2.5f;
  row[17] = -0.5f;
  row[31] = 7.6f;
  const Converted result = convert(WeightType::q4_0, row);
  uint16_t scale;
  std::memcpy(&scale, result.scales.data(), 2);
  EXPECT_EQ(from_half(scale), 1.0f);
  EXPECT_EQ(result.values[0], std::byte{0x80});   // column 0: 0; column 16: 8
  EXPECT_EQ(result.values[1], std::byte{0x8b});   // column 1: 11; column 17: 8
  EXPECT_EQ(result.values[15], std::byte{0xf8});  // column 31: 15
  EXPECT_FALSE(result.report.exact);
}

TEST(Quantize, TheFirstOfTwoExtremesSetsTheScale) {
  std::vector<float> row(32, 0.0f);
  row[3] = 4;
  row[4] = -4;
  const Converted result = convert(WeightType::q4_0, row);
  EXPECT_EQ(result.decoded[3], 4.0f);
  EXPECT_EQ(result.decoded[4], -3.5f);  // -0.5 * (15 - 8), as 16 does not fit
}

TEST(Quantize, Q4KeepsItsGridExactly) {
  std::mt19937 random(7);
  for (int block = 0; block < 2000; ++block) {
    // 5 significant bits, so that every product fits bf16 too.
    const float d =
        std::ldexp(static_cast<float>(16 + random() % 16), -12 + static_cast<int>(random() % 8)) *
        (random() % 2 ? 1.0f : -1.0f);
    std::vector<float> row(32);
    for (float& x : row) x = d * (static_cast<float>(random() % 16) - 8);
    row[random() % 32] = d * -8;
    const Converted result = convert(WeightType::q4_0, row);
    ASSERT_TRUE(result.report.exact);
    ASSERT_EQ(result.decoded, row);
  }
}

struct Bound {
  WeightType type;
  double of_largest;  // error bound as a part of the block's largest weight
  const char* why;
};

TEST(Quantize, RoundingErrorsAreBounded) {
  const Bound bounds[] = {
      {WeightType::q4_0, 1.0 / 8 + 1e-3, "one step of d = largest / 8, where q = 16 is cut to 15"},
      {WeightType::q8_0, 0.5 / 127 + 1e-3, "half a step, and the rounding of d to fp16"},
      {WeightType::f16, 0x1p-11, "half a unit in the last place"},
      {WeightType::f32, 0, "nothing is rounded"},
  };
  for (const Bound& bound : bounds) {
    for (uint32_t seed = 0; seed < 200; ++seed) {
      const std::vector<float> row = normal_row(seed, 32, 1);
      const Converted result = convert(bound.type, row);
      ASSERT_TRUE(result.report.finite);
      ASSERT_TRUE(result.scales.empty() || result.report.raised == 0);
      ASSERT_TRUE(close(result.decoded, row, bound.of_largest))
          << name(bound.type) << ": " << bound.why;
    }
  }
}

TEST(Quantize, BlocksOfARowAreIndependent) {
  for (const WeightType type : all_types) {
    std::vector<float> row = normal_row(1, 64, 1);
    for (size_t i = 32; i < 64; ++i) row[i] *= 100;
    const std::vector<float> first(row.begin(), row.begin() + 32);
    const std::vector<float> second(row.begin() + 32, row.end());
    std::vector<float> expected = convert(type, first).decoded;
    const std::vector<float> rest = convert(type, second).decoded;
    expected.insert(expected.end(), rest.begin(), rest.end());
    EXPECT_TRUE(same_bits(convert(type, row).decoded, expected)) << name(type);
  }
}

TEST(Quantize, SubnormalScalesAreRaisedAndCounted) {
  for (const WeightType type : {WeightType::q4_0, WeightType::q8_0}) {
    for (const float spread : {1e-5f, 1e-6f, 1e-9f, 1e-40f}) {
      const std::vector<float> row = normal_row(3, 32, spread);
      const Converted result = convert(type, row);
      uint16_t scale;
      std::memcpy(&scale, result.scales.data(), 2);
      EXPECT_EQ(std::abs(from_half(scale)), 0x1p-14f);
      EXPECT_EQ(result.report.raised, 1u);
      EXPECT_FALSE(result.report.exact);
      for (size_t i = 0; i < row.size(); ++i)
        EXPECT_LE(std::abs(result.decoded[i] - row[i]), 0x1p-14f);
    }
  }
}

TEST(Quantize, SubnormalHalvesBecomeZeroOrTheSmallestNormal) {
  const Converted result = convert(
      WeightType::f16, {0x1p-14f, 0x1.8p-15f, -0x1.8p-15f, 0x1.8p-16f, -0x1p-20f, 0, 1, -1});
  const std::vector<float> expected = {0x1p-14f, 0x1p-14f, -0x1p-14f, 0, 0, 0, 1, -1};
  EXPECT_EQ(result.decoded, expected);
  EXPECT_EQ(result.report.raised, 4u);
  EXPECT_FALSE(result.report.exact);
}

TEST(Quantize, ZerosAreExact) {
  for (const WeightType type : all_types) {
    const std::vector<float> row(32, 0.0f);
    const Converted result = convert(type, row);
    EXPECT_TRUE(result.report.exact) << name(type);
    EXPECT_EQ(result.report.raised, 0u) << name(type);
    EXPECT_EQ(largest(result.decoded), 0.0f) << name(type);
  }
}

TEST(Quantize, WhatIsNotFiniteOrTooLargeIsReported) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  for (const WeightType type : all_types) {
    for (const float bad : {infinity, -infinity, std::numeric_limits<float>::quiet_NaN()}) {
      for (const size_t place : {0, 17, 63}) {
        std::vector<float> row = normal_row(5, 64, 1);
        row[place] = bad;
        EXPECT_FALSE(convert(type, row).report.finite)
            << name(type) << " " << bad << " at " << place;
      }
    }
  }
  struct Limit {
    WeightType type;
    float fits;
    float too_large;
  };
  for (const Limit& limit :
       {Limit{WeightType::q4_0, 65504 * 8.0f, 65536 * 8.0f},
        Limit{WeightType::q8_0, 65504 * 127.0f, 65536 * 127.0f},
        Limit{WeightType::f16, 65504, 65520}, Limit{WeightType::f32, 3e38f, infinity}}) {
    std::vector<float> row(32, 1.0f);
    row[9] = limit.fits;
    EXPECT_TRUE(convert(limit.type, row).report.finite) << name(limit.type);
    row[9] = limit.too_large;
    EXPECT_FALSE(convert(limit.type, row).report.finite) << name(limit.type);
  }
}

}  // namespace
}  // namespace tandem::test
