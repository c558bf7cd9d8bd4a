// Per-layer inputs, as in Hugging Face transformers' gemma4 model: for each layer l and i < width,
//   norm = rms_norm(context[row][l] * context_scale)
//   y[l][row][i] = (norm[i] * weight[i] + table[row][l][i]) * 2^-0.5
// where context is the projection of the scaled embedding, context_scale = hidden^-0.5, and table
// is the gathered and scaled per-layer embedding.
#pragma once

#include "ops/op.h"

namespace tandem::ops {

struct PerLayerInput {
  uint32_t layers = 0;  // how many leading layers to compute
  uint32_t width = 0;
  uint32_t context_stride = 0;  // floats between rows of context
  uint32_t table_stride = 0;    // floats between rows of table
  float context_scale = 1;
  float epsilon = 0;
  gpu::View step;
  gpu::View context;          // [max_rows][context_stride]
  gpu::View table;            // [max_rows][table_stride]
  gpu::View weight;           // [width]
  gpu::View y;                // [layers][layer_stride / width rows][width]
  uint32_t layer_stride = 0;  // floats between layers of y
  uint32_t max_rows = 0;
};

Route per_layer_input_route(const PerLayerInput& op);
Result<void> record(gpu::CommandList& commands, const PerLayerInput& op);

// All dense: context and table [rows][layers][width], y [layers][rows][width].
void per_layer_input_reference(uint32_t rows, uint32_t layers, uint32_t width, float context_scale,
                               double epsilon, std::span<const float> context,
                               std::span<const float> table, std::span<const float> weight,
                               std::span<float> y);

}  // namespace tandem::ops
