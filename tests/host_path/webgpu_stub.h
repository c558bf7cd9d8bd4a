// A WebGPU that computes nothing: all of webgpu.h that Tandem calls, at almost no cost, so that
// what is counted is Tandem's own work. Rounds end with token 42, the last one with `length`.
#pragma once

#include <cstdint>

namespace tandem::test {

// The rounds of the next generation, of one token each.
void stub_rounds(uint32_t rounds);

}  // namespace tandem::test
