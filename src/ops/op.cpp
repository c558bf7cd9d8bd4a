#include "ops/op.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/half.h"

namespace tandem::ops {
namespace {

constexpr uint32_t block = spec::block_columns;

template <class T>
T load(std::span<const std::byte> bytes, uint64_t index) {
  T value;
  std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof(T));
  return value;
}

void dequantize_q4_0(const HostMatrix& matrix, uint64_t first_block, std::span<float> out) {
  for (uint32_t b = 0; b < matrix.columns / block; ++b) {
    const float scale = from_half(load<uint16_t>(matrix.scales, first_block + b));
    for (uint32_t j = 0; j < block / 2; ++j) {
      const auto pair = load<uint8_t>(matrix.values, (first_block + b) * (block / 2) + j);
      out[b * block + j] = scale * static_cast<float>((pair & 15) - 8);
      out[b * block + j + block / 2] = scale * static_cast<float>((pair >> 4) - 8);
    }
  }
}

void dequantize_q8_0(const HostMatrix& matrix, uint64_t first_block, std::span<float> out) {
  for (uint32_t b = 0; b < matrix.columns / block; ++b) {
    const float scale = from_half(load<uint16_t>(matrix.scales, first_block + b));
    for (uint32_t j = 0; j < block; ++j) {
      out[b * block + j] = scale * load<int8_t>(matrix.values, (first_block + b) * block + j);
    }
  }
}

}  // namespace

std::string_view name(RowFormat format) {
  switch (format) {
    case RowFormat::columns:
      return "columns";
    case RowFormat::lanes:
      return "lanes";
    case RowFormat::int8:
      return "int8";
  }
  return "";
}

Matrix Matrix::first_rows(uint32_t count) const {
  Matrix result{type, std::min(count, rows), columns, {}};
  const std::vector<spec::PlaneLayout> planes = spec::planes(type, columns);
  for (MatrixPart part : parts) {
    if (part.first_row >= result.rows) break;
    const uint32_t kept = std::min(part.rows, result.rows - part.first_row);
    if (kept < part.rows) {
      // Bindings are whole words.
      auto shorten = [&](gpu::View& view, const spec::PlaneLayout& plane) {
        view.bytes = (plane.bytes_per_row * kept + 3) / 4 * 4;
      };
      part.rows = kept;
      shorten(part.values, planes[0]);
      if (part.scales) shorten(part.scales, planes[1]);
    }
    result.parts.push_back(part);
  }
  return result;
}

void dequantize_row(const HostMatrix& matrix, uint32_t row, std::span<float> out) {
  const uint64_t first_block = uint64_t{row} * (matrix.columns / block);
  const uint64_t first_value = uint64_t{row} * matrix.columns;
  switch (matrix.type) {
    case spec::WeightType::q4_0:
      return dequantize_q4_0(matrix, first_block, out);
    case spec::WeightType::q8_0:
      return dequantize_q8_0(matrix, first_block, out);
    case spec::WeightType::f16:
      for (uint32_t c = 0; c < matrix.columns; ++c) {
        out[c] = from_half(load<uint16_t>(matrix.values, first_value + c));
      }
      return;
    case spec::WeightType::f32:
      std::memcpy(out.data(), matrix.values.data() + first_value * sizeof(float),
                  matrix.columns * sizeof(float));
      return;
    case spec::WeightType::u32:
      for (uint32_t c = 0; c < matrix.columns; ++c) {
        out[c] = static_cast<float>(load<uint32_t>(matrix.values, first_value + c));
      }
      return;
  }
}

std::string describe(const Route& route) {
  std::string text{route.kernel};
  for (const gpu::Constant& constant : route.constants) {
    text += fmt::format(" {}={:.8g}", constant.name, constant.value);
  }
  return text;
}

Result<void> dispatch(gpu::CommandList& commands, const Route& route,
                      std::initializer_list<gpu::Binding> bindings) {
  TRY_ASSIGN(const gpu::Kernel kernel, commands.device().kernel(route.kernel, route.constants));
  return commands.dispatch(kernel, bindings, route.grid, {label(route), route.traffic});
}

Result<void> check_size(std::string_view op, std::string_view name, gpu::View view,
                        uint64_t bytes) {
  if (view.bytes >= bytes) return {};
  return fail(ErrorCode::internal, "{}: {} is bound to {} bytes, but its shape needs {}", op, name,
              view.bytes, bytes);
}

uint64_t kv_row_bytes(KvType type, uint32_t kv_heads, uint32_t head_dim) {
  return uint64_t{kv_heads} * head_dim * (type == KvType::f16 ? 2 : 4);
}

Result<void> check_cache(std::string_view op, const KvCache& kv, uint32_t kv_heads,
                         uint32_t head_dim) {
  const uint64_t elements = uint64_t{kv.slots} * kv_heads * head_dim;
  const uint64_t bytes = kv.slots * kv_row_bytes(kv.type, kv_heads, head_dim);
  TRY(gpu::check_indexable(elements));
  TRY(check_size(op, "keys", kv.keys, bytes));
  return check_size(op, "values", kv.values, bytes);
}

}  // namespace tandem::ops
