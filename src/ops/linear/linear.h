// Matrix product with an epilogue: v[row][o] = sum_c weights[o][c] * x[row][c], in f32, then
//   none        y[row][o] = v[row][o]
//   gelu_pair   y[row][j] = gelu(v[row][2j]) * v[row][2j + 1]   (gate and up rows interleaved)
//   gelu_times  y[row][o] = gelu(v[row][o]) * times[row][o]
//   softcap     y[row][o] = c * tanh(v[row][o] / c)
// with gelu(x) = x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3))).
//
// Where x is int8, weights * x is (sum of weight q) scale d, summed over units of 32 columns.
//
// Routes `one` and `few` share one source, lanes, unrolling and reduction order, so that a row has
// the same bits in both; `many` is tiled and agrees within tolerance only.
#pragma once

#include <map>

#include "ops/op.h"

namespace tandem::ops {

enum class Epilogue { none, gelu_pair, gelu_times, softcap };
std::string_view name(Epilogue epilogue);

enum class RowRoute {
  one,   // 1 row
  few,   // 1 to `few_rows` rows
  many,  // any number of rows
};

// How linear_tiled.wgsl cuts a product of many rows into workgroups: lines of 16 invocations, each
// of which sums so many rows of x times so many weight rows, and teams of them, which share
// columns. linear_tiled_int8.wgsl sums 8 times 4, in at most 8 lines of all teams.
struct RowTile {
  uint32_t lines = 0;
  uint32_t x_rows = 0;
  uint32_t w_rows = 0;
  uint32_t teams = 1;
};

struct Linear {
  Matrix weights;  // one dispatch per part
  Epilogue epilogue = Epilogue::none;
  RowRoute rows = RowRoute::one;
  float softcap = 0;
  uint32_t few_rows = 4;  // 2 to 4
  // How many lanes share a weight row in `one` and `few`, in workgroups of how many invocations,
  // both powers of two up to 256, and how often they read pieces, or units, ahead of their use, up
  // to 4. 0: as suits shape and adapter.
  uint32_t lanes = 0;
  uint32_t workgroup = 0;
  uint32_t ahead = 0;
  // Matrices of so many rows, or columns, and more take whole units of 32 columns at a time: q4_0
  // where x is in lane order, or where it is int8.
  uint32_t unit_rows = 12288;
  uint32_t unit_columns = 12288;
  RowTile tile;  // of `many`; 0 lines: as suits the shape
  gpu::View step;
  gpu::View x;  // [max_rows][weights.columns]
  // `lanes` for `one` and `few` only, `int8` for q4_0 and q8_0.
  RowFormat x_format = RowFormat::columns;
  gpu::View times;  // gelu_times: [max_rows][weights.rows]
  gpu::View y;      // [max_rows][outputs], outputs = weights.rows, or half of it for gelu_pair
  RowFormat y_format = RowFormat::columns;  // or what `writes` allows
  uint32_t max_rows = 0;
};

// Columns of y.
uint32_t outputs(const Linear& op);
// Whether x can be int8.
bool takes_int8(spec::WeightType weights);
// Whether y can be in this format: of whole units, by `one` and `few` with gelu_pair, int8 where x
// is int8 and lanes where it is not.
bool writes(const Linear& op, RowFormat format);

// How the routes `one` and `few` cut a matrix.
struct Tiling {
  uint32_t lanes = 1;
  uint32_t workgroup = 64;
  uint32_t ahead = 1;
  bool units = false;  // whole ones of 32 columns, where it can
  bool operator==(const Tiling&) const = default;
};
// Whether the kernels can be cut so.
bool is_possible(const Tiling& tiling);
// What the operator leaves open, its shape and the adapter decide.
Tiling tiling(const Linear& op, const gpu::AdapterInfo& adapter);
// How many pieces of a row its lanes take in turn.
uint32_t row_pieces(const Linear& op);
// Leaves nothing open, but to what y's format asks for.
void cut(Linear& op, const Tiling& tiling);
// What decides how a product of few rows is best cut, in words: "q4_0 2560x1536 none lanes".
std::string shape(const Linear& op);
using Tilings = std::map<std::string, Tiling, std::less<>>;  // by shape

Route linear_route(const Linear& op, const MatrixPart& part, const gpu::AdapterInfo& adapter);
Result<void> record(gpu::CommandList& commands, const Linear& op);

// Runs the routes `one` and `few` of a shape once on fixed data (weights of its own, of the same
// type and shape). The device must outlive it.
class RowCheck {
 public:
  // Asks for the kernels, which are compiled in the background.
  static Result<RowCheck> begin(gpu::Device& device, const Linear& op);
  RowCheck(RowCheck&&) noexcept;
  RowCheck& operator=(RowCheck&&) noexcept;
  ~RowCheck();

  // Whether row r of a product of 1 to `few_rows` rows has the same bits in all; said once. Goes on
  // with the check, and says nothing while the device is not done, but for `wait`.
  Result<std::optional<bool>> identical(bool wait);

 private:
  struct Part;
  RowCheck(gpu::Device& device, const Linear& op);

  gpu::Device* device_;
  Linear op_;
  std::vector<Part> parts_;
};

// x: [rows][weights.columns]; `times` only for gelu_times. Uses all cores.
void linear_reference(const HostMatrix& weights, Epilogue epilogue, double softcap, uint32_t rows,
                      std::span<const float> x, std::span<const float> times, std::span<float> y);

}  // namespace tandem::ops
