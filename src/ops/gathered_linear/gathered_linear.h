// Matrix product of one row with chosen groups of weight rows: group g owns the weight rows
// ordering[g * n] .. ordering[g * n + n - 1], and for j < count, i < n
//   rows[j * n + i] = ordering[chosen[j] * n + i]
//   y[j * n + i] = sum_c weights[rows[j * n + i]][c] * x[c]
// in f32; then, if there is a softcap, y = softcap * tanh(y / softcap). Only these weight rows are
// read. (The head with ordered embeddings: groups are centroids, weight rows tokens.)
#pragma once

#include "ops/op.h"

namespace tandem::ops {

struct GatheredLinear {
  Matrix weights;           // one dispatch per part, each writes only the rows it owns
  uint32_t groups = 0;      // that there are
  uint32_t group_rows = 0;  // n
  uint32_t count = 0;       // groups that are chosen
  float softcap = 0;        // 0: none
  gpu::View step;           // of any rows: x is row 0
  gpu::View x;              // [weights.columns]
  gpu::View chosen;         // u32 [count], each < groups (larger ones count as the last group)
  gpu::View ordering;       // u32 [groups * group_rows], each < weights.rows (y and rows of larger
                            // ones stay as they are)
  gpu::View y;              // [count * group_rows]
  gpu::View rows;           // u32 [count * group_rows]
};

Route gathered_linear_route(const GatheredLinear& op, const MatrixPart& part,
                            const gpu::AdapterInfo& adapter);
Result<void> record(gpu::CommandList& commands, const GatheredLinear& op);

// y and rows: [chosen.size() * group_rows].
void gathered_linear_reference(const HostMatrix& weights, uint32_t group_rows, double softcap,
                               std::span<const float> x, std::span<const uint32_t> chosen,
                               std::span<const uint32_t> ordering, std::span<float> y,
                               std::span<uint32_t> rows);

}  // namespace tandem::ops
