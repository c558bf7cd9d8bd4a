#include "exporter/quantize.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/half.h"

namespace tandem::exporter {
namespace {

using spec::block_columns;

constexpr float smallest_normal_half = 0x1p-14f;
constexpr float largest_half = 65504;
constexpr float largest_id = 0x1p24f;

// A block's scale: as it is stored, and the reciprocal that its weights are multiplied with.
struct Scale {
  uint16_t half = 0;
  float stored = 0;
  float reciprocal = 0;
};

Scale make_scale(float d, RowReport& report) {
  if (d != 0 && std::abs(from_half(to_half(d))) < smallest_normal_half) {
    d = std::copysign(smallest_normal_half, d);
    ++report.raised;
  }
  const uint16_t half = to_half(d);
  const float stored = from_half(half);
  report.finite = report.finite && std::abs(stored) <= largest_half;
  return {half, stored, d != 0 ? 1 / d : 0};
}

// Loops over a block have a fixed length and no early end, so that compilers make vectors of them.
using Block = std::span<const float, block_columns>;

// The first weight of largest magnitude, with its sign; NaN or infinite if any weight is.
// Magnitudes are compared as integers, whose order is the same and holds for NaN, too.
float extreme(Block block) {
  int32_t positive = 0, negative = 0;  // the largest magnitude of each sign
  for (const float x : block) {
    const int32_t bits = std::bit_cast<int32_t>(x), magnitude = bits & 0x7fffffff;
    positive = std::max(positive, bits);
    negative = std::max(negative, bits < 0 ? magnitude : 0);
  }
  const float largest = std::bit_cast<float>(std::max(positive, negative));
  if (positive != negative) return positive > negative ? largest : -largest;
  const auto is_largest = [&](float x) { return std::abs(x) == largest; };
  const auto first = std::find_if(block.begin(), block.end(), is_largest);
  return first == block.end() ? largest : *first;
}

// Whether all weights are stored as they are given.
bool all_equal(Block block, float scale, const int32_t (&quants)[block_columns]) {
  int32_t different = 0;
  for (uint32_t i = 0; i < block_columns; ++i)
    different |= scale * static_cast<float>(quants[i]) != block[i] ? 1 : 0;
  return different == 0;
}

void convert_q4_0(Block block, std::byte* quants, std::byte* scale_out, RowReport& report) {
  const float largest = extreme(block);
  if (!std::isfinite(largest)) {
    report.finite = false;
    return;
  }
  const Scale scale = make_scale(largest / -8, report);
  int32_t q[block_columns];
  for (uint32_t i = 0; i < block_columns; ++i)
    q[i] = std::min(15, static_cast<int32_t>(block[i] * scale.reciprocal + 8.5f)) - 8;
  for (uint32_t i = 0; i < block_columns / 2; ++i) {
    quants[i] = static_cast<std::byte>((q[i] + 8) | (q[i + block_columns / 2] + 8) << 4);
  }
  std::memcpy(scale_out, &scale.half, sizeof(scale.half));
  report.exact = report.exact && all_equal(block, scale.stored, q);
}

void convert_q8_0(Block block, std::byte* quants, std::byte* scale_out, RowReport& report) {
  const float largest = extreme(block);
  if (!std::isfinite(largest)) {
    report.finite = false;
    return;
  }
  const Scale scale = make_scale(std::abs(largest) / 127, report);
  int32_t q[block_columns];
  for (uint32_t i = 0; i < block_columns; ++i) {
    const float steps = block[i] * scale.reciprocal;
    const int32_t whole = static_cast<int32_t>(steps);
    const float rest = steps - static_cast<float>(whole);
    q[i] = whole + (rest >= 0.5f ? 1 : 0) - (rest <= -0.5f ? 1 : 0);
  }
  for (uint32_t i = 0; i < block_columns; ++i)
    quants[i] = static_cast<std::byte>(static_cast<int8_t>(q[i]));
  std::memcpy(scale_out, &scale.half, sizeof(scale.half));
  report.exact = report.exact && all_equal(block, scale.stored, q);
}

uint16_t normal_half(float x, RowReport& report) {
  const uint16_t half = to_half(x);
  const bool subnormal = x != 0 && std::abs(from_half(half)) < smallest_normal_half;
  if (!subnormal) return half;
  ++report.raised;
  return to_half(std::abs(x) < smallest_normal_half / 2 ? 0.0f
                                                        : std::copysign(smallest_normal_half, x));
}

void convert_f16(std::span<const float> row, std::byte* values, RowReport& report) {
  for (size_t i = 0; i < row.size(); ++i) {
    const uint16_t half = normal_half(row[i], report);
    const float stored = from_half(half);
    report.finite = report.finite && std::abs(stored) <= largest_half;
    report.exact = report.exact && stored == row[i];
    std::memcpy(values + i * sizeof(half), &half, sizeof(half));
  }
}

void convert_f32(std::span<const float> row, std::byte* values, RowReport& report) {
  for (const float x : row) report.finite = report.finite && std::isfinite(x);
  std::memcpy(values, row.data(), row.size_bytes());
}

void convert_ids(std::span<const float> row, std::byte* values, RowReport& report) {
  for (size_t i = 0; i < row.size(); ++i) {
    if (!(row[i] >= 0 && row[i] <= largest_id)) {
      report.finite = false;
      return;
    }
    const uint32_t id = static_cast<uint32_t>(row[i]);
    std::memcpy(values + i * sizeof(id), &id, sizeof(id));
  }
}

}  // namespace

RowReport convert_row(spec::WeightType type, std::span<const float> row,
                      std::span<std::byte> values, std::span<std::byte> scales) {
  RowReport report;
  const size_t blocks = row.size() / block_columns;
  switch (type) {
    case spec::WeightType::q4_0:
      for (size_t b = 0; b < blocks; ++b) {
        convert_q4_0(Block(&row[b * block_columns], block_columns), &values[b * block_columns / 2],
                     &scales[b * 2], report);
      }
      break;
    case spec::WeightType::q8_0:
      for (size_t b = 0; b < blocks; ++b) {
        convert_q8_0(Block(&row[b * block_columns], block_columns), &values[b * block_columns],
                     &scales[b * 2], report);
      }
      break;
    case spec::WeightType::f16:
      convert_f16(row, values.data(), report);
      break;
    case spec::WeightType::f32:
      convert_f32(row, values.data(), report);
      break;
    case spec::WeightType::u32:
      convert_ids(row, values.data(), report);
      break;
  }
  return report;
}

}  // namespace tandem::exporter
