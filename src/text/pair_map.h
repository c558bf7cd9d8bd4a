// A map from pairs of numbers to a number that is filled once and then only read: open addressing,
// at most half full.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace tandem::text {

class PairMap {
 public:
  static constexpr uint32_t missing = std::numeric_limits<uint32_t>::max();

  // For at most `count` pairs.
  explicit PairMap(size_t count)
      : slots_(std::bit_ceil(2 * count + 2)), shift_(64 - std::countr_zero(slots_.size())) {}

  // `value` is not `missing`. False if the pair is there already, which changes nothing.
  bool insert(uint32_t first, uint32_t second, uint32_t value) {
    Slot& slot = slots_[position(first, second)];
    if (slot.value != missing) return false;
    slot = {first, second, value};
    return true;
  }

  uint32_t find(uint32_t first, uint32_t second) const {
    return slots_[position(first, second)].value;
  }

 private:
  struct Slot {
    uint32_t first = 0;
    uint32_t second = 0;
    uint32_t value = missing;
  };

  // The pair's slot, or the free one that ends its probe sequence.
  size_t position(uint32_t first, uint32_t second) const {
    const uint64_t hash = (uint64_t{first} * 0x9E3779B97F4A7C15u) ^ (second * 0xC2B2AE3D27D4EB4Fu);
    size_t at = (hash * 0xD6E8FEB86659FD93u) >> shift_;
    while (slots_[at].value != missing &&
           (slots_[at].first != first || slots_[at].second != second)) {
      at = (at + 1) & (slots_.size() - 1);
    }
    return at;
  }

  std::vector<Slot> slots_;
  int shift_;
};

}  // namespace tandem::text
