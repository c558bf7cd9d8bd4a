// What all operators share: the step a kernel runs, weights as they lie on the GPU and on the host,
// KV caches, routes.
//
// An operator is a folder: <op>.h says its contract; <op>.wgsl computes it; <op>.cpp chooses the
// route and records it; <op>_reference.cpp computes the same in plain C++, in double where it
// matters. Activations are f32, row by row, dense unless a stride is named. `max_rows` is the
// capacity of the row buffers; step.rows says how many are live.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/device.h"
#include "spec/layout.h"

namespace tandem::ops {

// What the rows of one step are. Lives in a GPU buffer, is written by the host or by the operators
// `accept` and `draft`, and is bound uniform (kernels include step.wgsl). A step of 0 rows does
// nothing.
struct Step {
  uint32_t position = 0;  // of row 0 in the timeline
  uint32_t rows = 0;
  uint32_t remaining = 0;  // tokens that may still be emitted
  uint32_t rounds = 0;     // that have emitted tokens so far
  uint32_t token = 0;      // the last token emitted
  uint32_t stop = 0;       // why the timeline stopped: a StopCode
  uint32_t accepted = 0;   // drafts of the last round: its row of this number is the newest
  uint32_t reserved = 0;
};
static_assert(sizeof(Step) == 32);

enum class StopCode : uint32_t { none, stop_id, length, context };

// How a row of activations lies in the words that its columns have as f32. Lanes that take units of
// 32 columns side by side read side by side in all but `columns`, for which rows must be of whole
// units.
enum class RowFormat {
  columns,  // f32, one by one
  lanes,    // f32: the first quads (of four columns) of all units, then the second quads, ...
  int8,     // each unit as q d, d = largest magnitude / 127, q = round(x / d) in -127 .. 127:
            // columns 0 to 15 of all units, 16 bytes each, then columns 16 to 31, then of each unit
            // d and the sum of q; the rest of the row is unused (quantize.h)
};
std::string_view name(RowFormat format);
constexpr bool has_units(uint32_t columns) { return columns % spec::block_columns == 0; }
// What a row has as int8.
constexpr uint64_t int8_row_bytes(uint32_t columns) { return columns + columns / 4; }
// What is read or written of a row.
constexpr uint64_t row_bytes(RowFormat format, uint32_t columns) {
  return format == RowFormat::int8 ? int8_row_bytes(columns) : uint64_t{columns} * sizeof(float);
}

// Offsets of bindings are multiples of 256 bytes: this many floats.
inline constexpr uint32_t aligned_floats = 64;

// A weight matrix on the GPU, split by rows into parts that fit a binding. All parts but the last
// have the same number of rows, a multiple of 64.
struct MatrixPart {
  uint32_t first_row = 0;
  uint32_t rows = 0;
  gpu::View values;  // the plane "quants" or "values"
  gpu::View scales;  // none for f16 and f32

  // What kernels have bound as scales: those of f16 and f32 do not read them.
  gpu::View bound_scales() const { return scales ? scales : values; }
};
struct Matrix {
  spec::WeightType type = spec::WeightType::f32;
  uint32_t rows = 0;
  uint32_t columns = 0;
  std::vector<MatrixPart> parts;

  // The first `count` rows; all of them if there are fewer.
  Matrix first_rows(uint32_t count) const;
};

// The same on the host: planes as spec/layout.h describes them.
struct HostMatrix {
  spec::WeightType type = spec::WeightType::f32;
  uint32_t rows = 0;
  uint32_t columns = 0;
  std::span<const std::byte> values;
  std::span<const std::byte> scales;
};
// Writes the weights of one row, exactly; token ids as the numbers that they are.
void dequantize_row(const HostMatrix& matrix, uint32_t row, std::span<float> out);

enum class KvType { f16, f32 };

// What products read of rows: with int8, those with quantized weights of the layers' norms, of
// attention, of the MLP's inside and of the final norm read RowFormat::int8.
enum class Activations { f32, int8 };

// Keys and values of one layer, [slot][kv_head][head_dim], position p in slot p % slots. f16 is
// packed in pairs (pack2x16float), so head_dim is even. `slots` >= what the window and the rows of
// one step need; for full layers it is the context.
struct KvCache {
  KvType type = KvType::f16;
  uint32_t slots = 0;
  gpu::View keys;
  gpu::View values;
};
struct HostKvCache {
  KvType type = KvType::f16;  // f16: values are rounded to fp16 when they are written
  uint32_t slots = 0;
  std::span<float> keys;
  std::span<float> values;
};
// Of the keys, or the values, of one position.
uint64_t kv_row_bytes(KvType type, uint32_t kv_heads, uint32_t head_dim);

// A kernel and what it is specialized with: the result of an operator's route function.
struct Route {
  std::string_view kernel;
  std::vector<gpu::Constant> constants;
  gpu::Grid grid;
  std::optional<gpu::Traffic> traffic;  // where the operator accounts for it
};
std::string describe(const Route& route);  // "linear_row LANES=16 COLUMNS=256 ..."
// The same for people: "linear_row q4_0 6144x1536 gelu_pair m=1 lanes=16". In label.cpp.
std::string label(const Route& route);

// Records the route's kernel.
Result<void> dispatch(gpu::CommandList& commands, const Route& route,
                      std::initializer_list<gpu::Binding> bindings);

// Refuses a view that is smaller than what the operator's shape makes its kernel touch: kernels may
// run without bounds checks.
Result<void> check_size(std::string_view op, std::string_view name, gpu::View view, uint64_t bytes);
// The same for the planes of a KV cache.
Result<void> check_cache(std::string_view op, const KvCache& kv, uint32_t kv_heads,
                         uint32_t head_dim);

}  // namespace tandem::ops
