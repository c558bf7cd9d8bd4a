// fp16 and bf16 conversions, exhaustively over the 16-bit side.
#include "base/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tandem {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

// The value of a half by its definition.
double half_value(uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const double mantissa = bits & 1023;
  const double magnitude =
      exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  return bits & 0x8000 ? -magnitude : magnitude;
}

TEST(Half, EveryHalfHasItsValueAndReadsBack) {
  for (uint32_t i = 0; i <= 0xffff; ++i) {
    const uint16_t bits = static_cast<uint16_t>(i);
    const float value = from_half(bits);
    if ((bits & 0x7fff) > 0x7c00) {
      ASSERT_TRUE(std::isnan(value)) << i;
      ASSERT_TRUE(std::isnan(from_half(to_half(value)))) << i;
      continue;
    }
    if ((bits & 0x7fff) == 0x7c00) {
      ASSERT_EQ(value, bits & 0x8000 ? -infinity : infinity) << i;
    } else {
      ASSERT_EQ(value, half_value(bits)) << i;
    }
    ASSERT_EQ(to_half(value), bits) << i << " = " << value;
  }
}

// Between two neighbours: below the middle goes down, above goes up, the middle to the even one.
TEST(Half, RoundsToNearestAndTiesToEven) {
  for (uint16_t low = 0; low < 0x7bff; ++low) {
    const uint16_t high = static_cast<uint16_t>(low + 1);
    const float middle = (from_half(low) + from_half(high)) / 2;
    const uint16_t even = low & 1 ? high : low;
    for (const int sign : {0, 0x8000}) {
      const float factor = sign ? -1.0f : 1.0f;
      ASSERT_EQ(to_half(factor * middle), sign | even) << middle;
      ASSERT_EQ(to_half(factor * std::nextafter(middle, 0.0f)), sign | low) << middle;
      ASSERT_EQ(to_half(factor * std::nextafter(middle, infinity)), sign | high) << middle;
    }
  }
}

TEST(Half, Edges) {
  struct Case {
    float value;
    uint16_t bits;
    const char* why;
  };
  const Case cases[] = {
      {65504, 0x7bff, "the largest half"},
      {65519.996f, 0x7bff, "just below the middle to the next power"},
      {65520, 0x7c00, "the middle: the even neighbour is infinity"},
      {1e30f, 0x7c00, "far too large"},
      {-infinity, 0xfc00, "infinity stays"},
      {-0.0f, 0x8000, "the sign of zero stays"},
      {0x1p-25f, 0x0000, "half of the smallest subnormal: even is zero"},
      {0x1.8p-25f, 0x0001, "above it"},
      {1e-40f, 0x0000, "an fp32 subnormal"},
  };
  for (const Case& c : cases) EXPECT_EQ(to_half(c.value), c.bits) << c.why;
}

TEST(Bf16, IsTheUpperHalfOfFp32) {
  for (uint32_t i = 0; i <= 0xffff; ++i) {
    ASSERT_EQ(std::bit_cast<uint32_t>(from_bf16(static_cast<uint16_t>(i))), i << 16);
  }
  EXPECT_EQ(from_bf16(0x3fc0), 1.5f);
}

}  // namespace
}  // namespace tandem
