#include "exporter/ggml_blocks.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "base/half.h"

namespace tandem::exporter {
namespace {

constexpr BlockType types[] = {
    {0, "F32", 1, 4},         {1, "F16", 1, 2},         {2, "Q4_0", 32, 18},
    {3, "Q4_1", 32, 20},      {6, "Q5_0", 32, 22},      {7, "Q5_1", 32, 24},
    {8, "Q8_0", 32, 34},      {9, "Q8_1", 32, 36},      {10, "Q2_K", 256, 84},
    {11, "Q3_K", 256, 110},   {12, "Q4_K", 256, 144},   {13, "Q5_K", 256, 176},
    {14, "Q6_K", 256, 210},   {15, "Q8_K", 256, 292},   {16, "IQ2_XXS", 256, 66},
    {17, "IQ2_XS", 256, 74},  {18, "IQ3_XXS", 256, 98}, {19, "IQ1_S", 256, 50},
    {20, "IQ4_NL", 32, 18},   {21, "IQ3_S", 256, 110},  {22, "IQ2_S", 256, 82},
    {23, "IQ4_XS", 256, 136}, {24, "I8", 1, 1},         {25, "I16", 1, 2},
    {26, "I32", 1, 4},        {27, "I64", 1, 8},        {28, "F64", 1, 8},
    {29, "IQ1_M", 256, 56},   {30, "BF16", 1, 2},       {34, "TQ1_0", 256, 54},
    {35, "TQ2_0", 256, 66},   {39, "MXFP4", 32, 17},    {40, "NVFP4", 64, 36},
    {41, "Q1_0", 128, 18}};

uint8_t byte_at(const std::byte* bytes, size_t i) { return std::to_integer<uint8_t>(bytes[i]); }
int signed_at(const std::byte* bytes, size_t i) { return static_cast<int8_t>(byte_at(bytes, i)); }

uint16_t half_bits(const std::byte* bytes) {
  uint16_t bits;
  std::memcpy(&bits, bytes, sizeof(bits));
  return bits;
}
float half_at(const std::byte* bytes) { return from_half(half_bits(bytes)); }

// Types of 32 values a block: d, then m in Q4_1 and Q5_1, then the fifth bits in Q5, then nibbles.
// The low nibble of byte i is value i, the high one value i + 16.
void widen_32(const std::byte* block, bool has_minimum, bool has_fifth_bit, int offset,
              float* values) {
  const float d = half_at(block);
  const float m = has_minimum ? half_at(block + 2) : 0;
  const std::byte* rest = block + (has_minimum ? 4 : 2);
  uint32_t fifth_bits = 0;
  if (has_fifth_bit) {
    std::memcpy(&fifth_bits, rest, sizeof(fifth_bits));
    rest += sizeof(fifth_bits);
  }
  for (uint32_t i = 0; i < 32; ++i) {
    const uint32_t nibble = i < 16 ? byte_at(rest, i) & 15u : byte_at(rest, i - 16) >> 4;
    const int q = static_cast<int>(nibble | (fifth_bits >> i & 1u) << 4) - offset;
    const float product = d * static_cast<float>(q);
    values[i] = has_minimum ? product + m : product;
  }
}
void widen_q4_0(const std::byte* block, float* values) { widen_32(block, false, false, 8, values); }
void widen_q4_1(const std::byte* block, float* values) { widen_32(block, true, false, 0, values); }
void widen_q5_0(const std::byte* block, float* values) { widen_32(block, false, true, 16, values); }
void widen_q5_1(const std::byte* block, float* values) { widen_32(block, true, true, 0, values); }

void widen_q8_0(const std::byte* block, float* values) {
  const float d = half_at(block);
  for (uint32_t i = 0; i < 32; ++i) values[i] = d * static_cast<float>(signed_at(block, 2 + i));
}

// The 6-bit scale (or minimum, which comes 4 bytes later) of sub-block i, of 8 packed in 12 bytes:
// the first four lie in the low bits of a byte, of the others the low nibble in bytes 8 to 11 and
// the rest in the high bits of the first four.
uint32_t packed_scale(const std::byte* bytes, uint32_t i, bool minimum) {
  const uint32_t at = minimum ? 4 : 0;
  if (i < 4) return byte_at(bytes, at + i) & 63u;
  const uint32_t low = byte_at(bytes, i + 4);
  return (minimum ? low >> 4 : low & 15u) | byte_at(bytes, at + i - 4) >> 6 << 4;
}

// 8 sub-blocks of 32 values: d, the minimums' m, packed scales, the fifth bits in Q5_K, nibbles.
// Sub-blocks 2i and 2i + 1 are the low and the high nibbles of the same 32 bytes.
void widen_k(const std::byte* block, bool has_fifth_bit, float* values) {
  const float d = half_at(block);
  const float m = half_at(block + 2);
  const std::byte* scales = block + 4;
  const std::byte* fifth_bits = block + 16;
  const std::byte* nibbles = fifth_bits + (has_fifth_bit ? 32 : 0);
  for (uint32_t sub = 0; sub < 8; ++sub) {
    const float scale = d * static_cast<float>(packed_scale(scales, sub, false));
    const float minimum = m * static_cast<float>(packed_scale(scales, sub, true));
    for (uint32_t i = 0; i < 32; ++i) {
      uint32_t q = byte_at(nibbles, sub / 2 * 32 + i) >> (sub % 2 * 4) & 15u;
      if (has_fifth_bit) q |= (byte_at(fifth_bits, i) >> sub & 1u) << 4;
      values[sub * 32 + i] = scale * static_cast<float>(q) - minimum;
    }
  }
}
void widen_q4_k(const std::byte* block, float* values) { widen_k(block, false, values); }
void widen_q5_k(const std::byte* block, float* values) { widen_k(block, true, values); }

// 16 sub-blocks of 16 values: low nibbles, high bit pairs, 8-bit scales, d. Of each half of the
// block, values 0 to 63 are the low nibbles of 64 bytes and the others the high ones; the pairs of
// value i lie in byte i % 32, at bit 2 (i / 32).
void widen_q6_k(const std::byte* block, float* values) {
  const std::byte* scales = block + 192;
  const float d = half_at(block + 208);
  for (uint32_t i = 0; i < 256; ++i) {
    const uint32_t half = i / 128, in_half = i % 128;
    const uint32_t nibble = byte_at(block, half * 64 + in_half % 64) >> (in_half / 64 * 4) & 15u;
    const uint32_t pair = byte_at(block, 128 + half * 32 + in_half % 32) >> (in_half / 32 * 2) & 3u;
    const int q = static_cast<int>(nibble | pair << 4) - 32;
    values[i] = d * static_cast<float>(signed_at(scales, i / 16)) * static_cast<float>(q);
  }
}

using WidenBlock = void (*)(const std::byte* block, float* values);

WidenBlock widener(std::string_view type) {
  constexpr std::pair<std::string_view, WidenBlock> wideners[] = {
      {"Q4_0", widen_q4_0}, {"Q4_1", widen_q4_1}, {"Q5_0", widen_q5_0}, {"Q5_1", widen_q5_1},
      {"Q8_0", widen_q8_0}, {"Q4_K", widen_q4_k}, {"Q5_K", widen_q5_k}, {"Q6_K", widen_q6_k}};
  for (const auto& [name, widen] : wideners) {
    if (name == type) return widen;
  }
  return nullptr;
}

template <class Key>
const BlockType* find_type(Key BlockType::*key, Key wanted) {
  const auto found = std::find_if(std::begin(types), std::end(types),
                                  [&](const BlockType& type) { return type.*key == wanted; });
  return found == std::end(types) ? nullptr : found;
}

}  // namespace

const BlockType* block_type(uint32_t id) { return find_type(&BlockType::id, id); }
const BlockType* block_type(std::string_view name) { return find_type(&BlockType::name, name); }

bool is_quantized(std::string_view type) { return widener(type) != nullptr; }

void widen_blocks(std::string_view type, const std::byte* blocks, std::span<float> values) {
  const WidenBlock widen = widener(type);
  const BlockType& layout = *block_type(type);
  for (size_t i = 0; i < values.size(); i += layout.values, blocks += layout.bytes) {
    widen(blocks, &values[i]);
  }
}

bool is_kept(std::string_view from, spec::WeightType to) {
  return (from == "Q4_0" && to == spec::WeightType::q4_0) ||
         (from == "Q8_0" && to == spec::WeightType::q8_0);
}

RowReport keep_row(spec::WeightType type, std::span<const std::byte> blocks,
                   std::span<std::byte> values, std::span<std::byte> scales) {
  constexpr uint32_t scale_bytes = sizeof(uint16_t);
  const std::string_view name = type == spec::WeightType::q4_0 ? "Q4_0" : "Q8_0";
  const size_t block_bytes = block_type(name)->bytes;
  const size_t quant_bytes = block_bytes - scale_bytes;
  RowReport report;
  for (size_t i = 0; i < blocks.size() / block_bytes; ++i) {
    const std::byte* block = &blocks[i * block_bytes];
    const std::span quants = values.subspan(i * quant_bytes, quant_bytes);
    const std::span scale = scales.subspan(i * scale_bytes, scale_bytes);
    const uint32_t magnitude = half_bits(block) & 0x7fffu;
    if (magnitude > 0 && magnitude < 0x0400u) {
      float weights[spec::block_columns];
      widen_blocks(name, block, weights);
      report += convert_row(type, weights, quants, scale);
      continue;
    }
    report.finite = report.finite && magnitude < 0x7c00u;
    std::memcpy(scale.data(), block, scale_bytes);
    std::memcpy(quants.data(), block + scale_bytes, quant_bytes);
  }
  return report;
}

}  // namespace tandem::exporter
