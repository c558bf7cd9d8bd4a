// Activations to int8 in plain C++, in f32 as the kernels compute them.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "ops/quantize/quantize.h"

namespace tandem::ops {
namespace {

struct Unit {
  float d = 0;
  std::array<int32_t, spec::block_columns> q{};
};

Unit quantized(std::span<const float> x) {
  Unit unit;
  // As bits, magnitudes have the order of their values, with infinity and NaN above all.
  uint32_t bits = 0;
  for (float value : x) bits = std::max(bits, std::bit_cast<uint32_t>(std::abs(value)));
  const auto largest = std::bit_cast<float>(bits);
  unit.d = largest * (1.0f / 127);
  if (!std::isfinite(largest)) return unit;
  const float factor = 127 / std::max(largest, 1e-30f);
  for (size_t i = 0; i < x.size(); ++i) {
    unit.q[i] = static_cast<int32_t>(std::nearbyint(x[i] * factor));
  }
  return unit;
}

// Where a row of `units` units has q of a unit's column i: a byte of a word.
struct Place {
  uint32_t word;
  uint32_t shift;
};
Place place(uint32_t units, uint32_t unit, uint32_t i) {
  return {4 * (i / 16 * units + unit) + i % 16 / 4, i % 4 * 8};
}

template <class Take>
void for_each_unit(uint32_t columns, std::span<const float> rows, Take take) {
  for (size_t first = 0; first < rows.size(); first += spec::block_columns) {
    take(first / columns, static_cast<uint32_t>(first % columns / spec::block_columns),
         quantized(rows.subspan(first, spec::block_columns)));
  }
}

}  // namespace

void quantize_reference(uint32_t columns, std::span<float> rows) {
  for_each_unit(columns, rows, [&](size_t row, uint32_t index, const Unit& unit) {
    const auto x = rows.subspan(row * columns + index * spec::block_columns, spec::block_columns);
    for (size_t i = 0; i < x.size(); ++i) x[i] = unit.d * static_cast<float>(unit.q[i]);
  });
}

std::vector<uint32_t> int8_rows_reference(uint32_t columns, std::span<const float> rows) {
  std::vector<uint32_t> words(rows.size());
  const uint32_t units = columns / spec::block_columns;
  for_each_unit(columns, rows, [&](size_t row, uint32_t index, const Unit& unit) {
    const std::span<uint32_t> to = std::span(words).subspan(row * columns, columns);
    int32_t sum = 0;
    for (uint32_t i = 0; i < spec::block_columns; ++i) {
      const auto [word, shift] = place(units, index, i);
      to[word] |= (static_cast<uint32_t>(unit.q[i]) & 255) << shift;
      sum += unit.q[i];
    }
    to[8 * units + 2 * index] = std::bit_cast<uint32_t>(unit.d);
    to[8 * units + 2 * index + 1] = static_cast<uint32_t>(sum);
  });
  return words;
}

std::vector<float> int8_values(uint32_t columns, std::span<const uint32_t> rows) {
  std::vector<float> values(rows.size());
  const uint32_t units = columns / spec::block_columns;
  for (size_t index = 0; index < values.size(); ++index) {
    const auto row = rows.subspan(index / columns * columns, columns);
    const uint32_t column = static_cast<uint32_t>(index % columns);
    const uint32_t unit = column / spec::block_columns;
    const auto [word, shift] = place(units, unit, column % spec::block_columns);
    const auto q = static_cast<int8_t>(row[word] >> shift);
    values[index] = std::bit_cast<float>(row[8 * units + 2 * unit]) * static_cast<float>(q);
  }
  return values;
}

}  // namespace tandem::ops
