// The noise of sampling: a function of (seed, position, token) in integer arithmetic, with the bits
// that sample_pass.wgsl computes.
#pragma once

#include <array>
#include <cstdint>

namespace tandem::ops {

// The counter-based generator Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as
// 1, 2, 3", 2011).
std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

// -log2(-ln u) for u = 1 - (random + 1/2) / 2^32, rounded down to a multiple of 2^-18: standard
// Gumbel noise divided by ln 2. It lies in [-4.52, 33].
float gumbel(uint32_t random);

float sample_noise(uint64_t seed, uint32_t position, uint32_t token);

}  // namespace tandem::ops
