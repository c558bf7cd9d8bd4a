// Weights back from their planes, written from the layout's description alone.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

#include "base/half.h"
#include "spec/layout.h"

namespace tandem::test {

inline std::vector<float> decode_row(spec::WeightType type, std::span<const std::byte> values,
                                     std::span<const std::byte> scales) {
  std::vector<float> row;
  auto half_at = [](std::span<const std::byte> bytes, size_t index) {
    uint16_t bits;
    std::memcpy(&bits, &bytes[index * 2], 2);
    return from_half(bits);
  };
  switch (type) {
    case spec::WeightType::q4_0:
      for (size_t i = 0; i < values.size() * 2; ++i) {
        const size_t block = i / 32;
        const uint8_t byte = static_cast<uint8_t>(values[block * 16 + i % 16]);
        const int q = i % 32 < 16 ? byte & 15 : byte >> 4;
        row.push_back(half_at(scales, block) * static_cast<float>(q - 8));
      }
      break;
    case spec::WeightType::q8_0:
      for (size_t i = 0; i < values.size(); ++i) {
        row.push_back(half_at(scales, i / 32) * static_cast<float>(static_cast<int8_t>(values[i])));
      }
      break;
    case spec::WeightType::f16:
      for (size_t i = 0; i < values.size() / 2; ++i) row.push_back(half_at(values, i));
      break;
    case spec::WeightType::f32:
      row.resize(values.size() / 4);
      std::memcpy(row.data(), values.data(), values.size());
      break;
    case spec::WeightType::u32:
      for (size_t i = 0; i < values.size(); i += 4) {
        uint32_t id;
        std::memcpy(&id, &values[i], 4);
        row.push_back(static_cast<float>(id));
      }
      break;
  }
  return row;
}

}  // namespace tandem::test
