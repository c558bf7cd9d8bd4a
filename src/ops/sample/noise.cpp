#include "ops/sample/noise.h"

#include <bit>
#include <span>

namespace tandem::ops {
namespace {

constexpr int fraction_bits = 25;  // of fixed-point logarithms

// The integer part of a * x / 2^32.
int32_t product(int32_t a, uint32_t x) { return static_cast<int32_t>((int64_t{a} * x) >> 32); }

// c[0] x + c[1] x^2 + ..., in the format of the coefficients, for x in units of 2^-32.
int32_t polynomial(std::span<const int32_t> c, uint32_t x) {
  int32_t sum = 0;
  for (size_t i = c.size(); i-- > 0;) sum = product(sum + c[i], x);
  return sum;
}

// log2(n), n > 0; the polynomial is log2(1 + x) in units of 2^-30, within 2^-22.
int32_t fixed_log2(uint32_t n) {
  constexpr int32_t c[] = {1549081665, -774497234, 515409455, -379134322,
                           273993518,  -165519456, 67375618,  -12967602};
  const int zeros = std::countl_zero(n);
  const uint32_t x = n << zeros << 1;
  return ((31 - zeros) << fraction_bits) + (polynomial(c, x) >> (30 - fraction_bits));
}

// log2(-ln(1 - y) / y) for y = z / 2^33; the polynomial is in units of 2^-31, within 2^-21.
int32_t fixed_curve(uint32_t z) {
  constexpr int32_t c[] = {774541362, 161327631, 48956991, 13737170, 14655287, -7952081, 6699496};
  return polynomial(c, z) >> (31 - fraction_bits);
}

}  // namespace

std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xd2511f53} * counter[0];
    const uint64_t b = uint64_t{0xcd9e8d57} * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(a)};
    key = {key[0] + 0x9e3779b9u, key[1] + 0xbb67ae85u};
  }
  return counter;
}

float gumbel(uint32_t random) {
  // With y = (random + 1/2) / 2^32 this is -log2(-ln(1 - y)). Each half measures the distance from
  // its own end, as a multiple of 2^-33, so that both tails are exact.
  constexpr int32_t one = 1 << fraction_bits;
  constexpr int32_t minus_log2_ln2 = 17742455;  // 0.52876637
  const bool upper = random >= 0x80000000u;
  const uint32_t distance = 2 * (upper ? ~random : random) + 1;
  const int32_t depth = 33 * one - fixed_log2(distance);
  const int32_t noise =
      upper ? minus_log2_ln2 + fraction_bits * one - fixed_log2(static_cast<uint32_t>(depth))
            : depth - fixed_curve(distance);
  return static_cast<float>(noise >> 7) * 0x1p-18f;
}

float sample_noise(uint64_t seed, uint32_t position, uint32_t token) {
  const auto random = philox({token / 4, position, 0, 0},
                             {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
  return gumbel(random[token % 4]);
}

}  // namespace tandem::ops
