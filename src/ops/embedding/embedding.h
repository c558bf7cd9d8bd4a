// Embedding gather: y[row][c] = scale * table[token][c], where token = timeline[step.position +
// row].
#pragma once

#include "ops/op.h"

namespace tandem::ops {

struct Embedding {
  Matrix table;  // [vocabulary, columns]; one dispatch per part, each writes only the rows it owns
  uint32_t columns = 0;  // how many leading columns to gather; a multiple of 32
  float scale = 1;
  gpu::View step;
  gpu::View timeline;  // u32 by position
  gpu::View y;         // [max_rows][columns]
  uint32_t max_rows = 0;
};

Route embedding_route(const Embedding& op, const MatrixPart& part);
Result<void> record(gpu::CommandList& commands, const Embedding& op);

// y: [tokens.size()][columns].
void embedding_reference(const HostMatrix& table, uint32_t columns, float scale,
                         std::span<const uint32_t> tokens, std::span<float> y);

}  // namespace tandem::ops
