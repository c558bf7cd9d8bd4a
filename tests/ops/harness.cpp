#include "ops/harness.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <random>

#include "base/half.h"
#include "ops/quantize/quantize.h"

namespace tandem::test {
namespace {

using spec::WeightType;

void append_half(std::vector<std::byte>& bytes, uint16_t half) {
  bytes.push_back(std::byte(half & 255));
  bytes.push_back(std::byte(half >> 8));
}

// Inverse of a block's scale; 0 for a block of zeros.
float inverse(float scale) { return scale == 0 ? 0 : 1 / scale; }

void quantize_q4_0(std::span<const float> block, TestMatrix& out) {
  const float largest = *std::max_element(
      block.begin(), block.end(), [](float a, float b) { return std::abs(a) < std::abs(b); });
  const float scale = largest / -8;
  auto nibble = [&](float value) {
    return std::clamp(static_cast<int>(value * inverse(scale) + 8.5f), 0, 15);
  };
  append_half(out.scales, to_half(scale));
  for (size_t j = 0; j < 16; ++j) {
    out.values.push_back(std::byte(nibble(block[j]) | nibble(block[j + 16]) << 4));
  }
}

void quantize_q8_0(std::span<const float> block, TestMatrix& out) {
  float largest = 0;
  for (float value : block) largest = std::max(largest, std::abs(value));
  const float scale = largest / 127;
  append_half(out.scales, to_half(scale));
  for (float value : block) {
    out.values.push_back(std::byte(static_cast<int8_t>(std::round(value * inverse(scale)))));
  }
}

}  // namespace

std::vector<float> random_floats(size_t count, uint32_t seed, float scale) {
  std::mt19937 generator(seed);
  std::vector<float> values(count);
  for (float& value : values) {
    value = scale * (static_cast<float>(generator() >> 8) * 0x1p-23f - 1);
  }
  return values;
}

TestMatrix quantize(WeightType type, uint32_t rows, uint32_t columns,
                    std::span<const float> weights) {
  TestMatrix out{type, rows, columns, {}, {}};
  switch (type) {
    case WeightType::q4_0:
    case WeightType::q8_0:
      for (size_t i = 0; i < weights.size(); i += spec::block_columns) {
        const auto block = weights.subspan(i, spec::block_columns);
        type == WeightType::q4_0 ? quantize_q4_0(block, out) : quantize_q8_0(block, out);
      }
      break;
    case WeightType::f16:
      for (float weight : weights) append_half(out.values, to_half(weight));
      break;
    case WeightType::f32:
      out.values.resize(weights.size_bytes());
      std::memcpy(out.values.data(), weights.data(), weights.size_bytes());
      break;
    case WeightType::u32:
      give_up("token ids are no weights");
  }
  return out;
}

TestMatrix random_matrix(WeightType type, uint32_t rows, uint32_t columns, uint32_t seed) {
  return quantize(type, rows, columns, random_floats(size_t{rows} * columns, seed));
}

GpuMatrix upload(const TestMatrix& matrix, uint32_t rows_per_part, gpu::Device& device) {
  GpuMatrix result{{matrix.type, matrix.rows, matrix.columns, {}}, {}};
  if (rows_per_part == 0) rows_per_part = matrix.rows;
  auto plane = [&](const std::vector<std::byte>& bytes, uint32_t first,
                   uint32_t rows) -> gpu::View {
    if (bytes.empty()) return {};
    const size_t row_bytes = bytes.size() / matrix.rows;
    std::vector<std::byte> part(bytes.begin() + row_bytes * first,
                                bytes.begin() + row_bytes * (first + rows));
    part.resize((part.size() + 3) / 4 * 4);
    result.buffers.push_back(upload(part, device));
    return result.buffers.back().view();
  };
  for (uint32_t first = 0; first < matrix.rows; first += rows_per_part) {
    const uint32_t rows = std::min(rows_per_part, matrix.rows - first);
    const gpu::View values = plane(matrix.values, first, rows);
    result.matrix.parts.push_back({first, rows, values, plane(matrix.scales, first, rows)});
  }
  return result;
}

gpu::Buffer upload(const ops::Step& step, gpu::Device& device) {
  return upload(std::vector{step}, device);
}

std::vector<float> in_lane_order(std::span<const float> rows, uint32_t columns) {
  std::vector<float> result;
  for (size_t row = 0; row < rows.size(); row += columns) {
    for (uint32_t quad = 0; quad < 8; ++quad) {
      for (uint32_t unit = 0; unit < columns / 32; ++unit) {
        const auto from = rows.begin() + row + 32 * unit + 4 * quad;
        result.insert(result.end(), from, from + 4);
      }
    }
  }
  return result;
}

gpu::Buffer upload_rows(ops::RowFormat format, uint32_t columns, std::span<const float> rows,
                        gpu::Device& device) {
  switch (format) {
    case ops::RowFormat::columns:
      break;
    case ops::RowFormat::lanes:
      return upload(in_lane_order(rows, columns), device);
    case ops::RowFormat::int8:
      return upload(ops::int8_rows_reference(columns, rows), device);
  }
  return upload(rows, device);
}

testing::AssertionResult is_int8(std::span<const uint32_t> words, uint32_t columns,
                                 std::span<const float> rows) {
  const uint32_t units = columns / 32;
  const std::vector<float> values = ops::int8_values(columns, words);
  for (size_t first = 0; first < rows.size(); first += 32) {
    const auto row = words.subspan(first / columns * columns, columns);
    const auto unit = first % columns / 32;
    const auto x = rows.subspan(first, 32);
    float largest = 0;
    for (float value : x) largest = std::max(largest, std::abs(value));
    const auto d = std::bit_cast<float>(row[8 * units + 2 * unit]);
    // A GPU may take what is smaller than f32's normal numbers for 0.
    if (std::abs(d - largest / 127) > 1e-6f * largest + 1.2e-38f) {
      return testing::AssertionFailure()
             << "unit at " << first << ": d is " << d << ", not " << largest / 127;
    }
    int32_t sum = 0;
    for (size_t i = 0; i < 32; ++i) {
      const float q = d == 0 ? 0 : values[first + i] / d;
      sum += static_cast<int32_t>(std::lround(q));
      if (std::abs(values[first + i] - x[i]) > 0.501f * d + 1e-30f) {
        return testing::AssertionFailure()
               << "[" << first + i << "] is " << values[first + i] << " for " << x[i];
      }
    }
    if (sum != static_cast<int32_t>(row[8 * units + 2 * unit + 1])) {
      return testing::AssertionFailure() << "unit at " << first << ": the sum is not " << sum;
    }
  }
  return testing::AssertionSuccess();
}

bool is_poison(float value) { return std::bit_cast<uint32_t>(value) == poison_bits; }

}  // namespace tandem::test
