// The layout of weight planes: how a matrix of each type lies in an artifact, in GPU buffers and in
// memory.
//
// A plane is one array of little-endian bytes. A matrix [rows, columns] has one or two planes, each
// row by row:
//   q4_0  "quants": per block of 32 columns 16 bytes; the low nibble of byte j is column j of the
//         block, the high nibble column j + 16 (one vec4<u32> a block). "scales": one fp16 a block.
//         x = d * (q - 8).
//   q8_0  "quants": per block of 32 columns 32 signed bytes (two vec4<u32>). "scales": one fp16 a
//         block. x = d * q.
//   f16   "values": fp16.
//   f32   "values": fp32.
//   u32   "values": u32 token ids, which are no weights.
// A vector (norm weight, layer scalar) is a matrix of one row.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::spec {

// Raised whenever the bytes of a plane would mean something else.
inline constexpr uint32_t layout_version = 1;

inline constexpr uint32_t block_columns = 32;

enum class WeightType { q4_0, q8_0, f16, f32, u32 };

std::string_view name(WeightType type);
std::optional<WeightType> weight_type(std::string_view name);

struct PlaneLayout {
  std::string_view suffix;  // "quants", "scales" or "values"
  std::string_view dtype;   // as safetensors spells it: "U8", "F16", "F32", "U32"
  uint64_t bytes_per_row;
};

// The planes of a matrix of `columns` columns. Quantized types need columns % 32 == 0
// (otherwise there is no layout, and the result is empty). Matrices have columns % 4 == 0; vectors
// any length.
std::vector<PlaneLayout> planes(WeightType type, uint32_t columns);

}  // namespace tandem::spec
