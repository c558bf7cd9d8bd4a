// What the fuzzers run: each target reads its input as one of the formats that come from outside,
// and checks what must hold of whatever is accepted.
#pragma once

#include <span>
#include <string_view>

#include "tandem/error.h"

namespace tandem::test {

struct FuzzTarget {
  std::string_view name;  // also of its folder in tests/fuzz/seeds
  // Aborts where an accepted input breaks its promise; an error is a refusal.
  Result<void> (*read)(std::string_view input);
};

std::span<const FuzzTarget> fuzz_targets();

}  // namespace tandem::test
