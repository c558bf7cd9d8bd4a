// What a kernel must not have written: poison that is still there.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <span>

#include "support/device.h"

namespace tandem::test {

// Every value still has the bits that `poisoned` gave it.
template <class T>
::testing::AssertionResult untouched(std::span<const T> values) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (std::bit_cast<uint32_t>(values[i]) != poison_bits) {
      return ::testing::AssertionFailure() << fmt::format("[{}] was written: {}", i, values[i]);
    }
  }
  return ::testing::AssertionSuccess();
}

}  // namespace tandem::test
