// Comparison of float arrays that says where they differ first and where they differ most.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <span>

namespace tandem::test {

// Every |actual - expected| <= tolerance * scale, where scale is the largest |expected|. NaN never
// passes.
inline ::testing::AssertionResult close(std::span<const float> actual,
                                        std::span<const float> expected, double tolerance) {
  if (actual.size() != expected.size()) {
    return ::testing::AssertionFailure()
           << fmt::format("{} values, expected {}", actual.size(), expected.size());
  }
  double scale = 0;
  for (float value : expected) scale = std::max(scale, std::abs(double{value}));
  const double bound = tolerance * (scale > 0 ? scale : 1);
  double worst = 0;
  size_t worst_index = 0;
  size_t first = actual.size();
  for (size_t i = 0; i < actual.size(); ++i) {
    const double difference = std::abs(double{actual[i]} - double{expected[i]});
    if (!(difference <= bound) && first == actual.size()) first = i;
    if (!(difference <= worst)) worst = difference, worst_index = i;
  }
  if (first == actual.size()) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << fmt::format(
             "difference over {} of scale {}: first at [{}]: {} != {}; largest at [{}]: {} != {} "
             "({:.3g} of scale)",
             tolerance, scale, first, actual[first], expected[first], worst_index,
             actual[worst_index], expected[worst_index], worst / (scale > 0 ? scale : 1));
}

// Every value has the same bits.
inline ::testing::AssertionResult same_bits(std::span<const float> actual,
                                            std::span<const float> expected) {
  if (actual.size() != expected.size()) {
    return ::testing::AssertionFailure()
           << fmt::format("{} values, expected {}", actual.size(), expected.size());
  }
  for (size_t i = 0; i < actual.size(); ++i) {
    if (std::bit_cast<uint32_t>(actual[i]) != std::bit_cast<uint32_t>(expected[i])) {
      return ::testing::AssertionFailure()
             << fmt::format("first different bits at [{}]: {} != {}", i, actual[i], expected[i]);
    }
  }
  return ::testing::AssertionSuccess();
}

}  // namespace tandem::test
