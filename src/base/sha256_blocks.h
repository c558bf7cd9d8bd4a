// SHA-256 in plain C++ (FIPS 180-4), for builds without a crypto library.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/sha256.h"

namespace tandem {

class Sha256Blocks {
 public:
  void update(std::span<const std::byte> bytes);
  // The digest of everything so far. Only `update` of a new object may follow.
  Digest finish();

 private:
  static constexpr size_t block_bytes = 64;
  void add_block();

  std::array<uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<uint8_t, block_bytes> block_{};
  uint64_t bytes_ = 0;
};

}  // namespace tandem
