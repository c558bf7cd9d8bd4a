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

// The first weight of largest magnitude, with its sign; NaN or infinite if any weight is.
// Magnitudes are compared as integers, whose order is the same and holds for NaN, too.
float extreme(std::span<const float> block) {
  int32_t largest = 0;
  for (const float x : block) {
    const int32_t magnitude = std::bit_cast<int32_t>(x) & 0x7fffffff;
    largest = magnitude > largest ? magnitude : largest;
  }
  for (const float x : block) {
    if ((std::bit_cast<int32_t>(x) & 0x7fffffff) == largest) return x;
  }
  return 0;
}

void convert_q4_0(std::span<const float> block, std::byte* quants, std::byte* scale_out,
                  RowReport& report) {
  const float largest = extreme(block);
  if (!std::isfinite(largest)) {
    report.finite = false;
    return;
  }
  const Scale scale = make_scale(largest / -8, report);
  uint8_t q[block_columns];
  bool exact = true;
  for (uint32_t i = 0; i < block_columns; ++i) {
    q[i] = static_cast<uint8_t>(std::min(15, static_cast<int>(block[i] * scale.reciprocal + 8.5f)));
    exact &= scale.stored * static_cast<float>(q[i] - 8) == block[i];
  }
  for (uint32_t i = 0; i < block_columns / 2; ++i) {
    quants[i] = static_cast<std::byte>(q[i] | q[i + block_columns / 2] << 4);
  }
  std::memcpy(scale_out, &scale.half, sizeof(scale.half));
  report.exact = report.exact && exact;
}

void convert_q8_0(std::span<const float> block, std::byte* quants, std::byte* scale_out,
                  RowReport& report) {
  const float largest = extreme(block);
  if (!std::isfinite(largest)) {
    report.finite = false;
    return;
  }
  const Scale scale = make_scale(std::abs(largest) / 127, report);
  bool exact = true;
  for (uint32_t i = 0; i < block_columns; ++i) {
    const float rounded = std::round(block[i] * scale.reciprocal);
    quants[i] = static_cast<std::byte>(static_cast<int8_t>(rounded));
    exact &= scale.stored * rounded == block[i];
  }
  std::memcpy(scale_out, &scale.half, sizeof(scale.half));
  report.exact = report.exact && exact;
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
        convert_q4_0(row.subspan(b * block_columns, block_columns), &values[b * block_columns / 2],
                     &scales[b * 2], report);
      }
      break;
    case spec::WeightType::q8_0:
      for (size_t b = 0; b < blocks; ++b) {
        convert_q8_0(row.subspan(b * block_columns, block_columns), &values[b * block_columns],
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
