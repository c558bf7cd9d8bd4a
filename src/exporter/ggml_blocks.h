// The tensor types of GGML: their names and sizes, and what their blocks of values mean.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "exporter/quantize.h"

namespace tandem::exporter {

struct BlockType {
  uint32_t id;  // in a GGUF file
  std::string_view name;
  uint32_t values;  // in a block; 1 where there are none
  uint32_t bytes;   // of a block
};

// Null for a type that GGML does not have.
const BlockType* block_type(uint32_t id);
const BlockType* block_type(std::string_view name);

// Whether `widen_blocks` knows a type: Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K and Q6_K.
bool is_quantized(std::string_view type);

// The values of whole blocks of such a type. With a block's d and, where there is one, m, and in
// the K types a scale s and a minimum n for each sub-block, a value is
//   Q4_0  d (q - 8)    Q4_1  d q + m      Q8_0  d q            Q4_K, Q5_K  d s q - m n
//   Q5_0  d (q - 16)   Q5_1  d q + m      Q6_K  d s (q - 32)
// Products are exact in fp32, so a value is the true one, rounded once where there is a sum.
void widen_blocks(std::string_view type, const std::byte* blocks, std::span<float> values);

// Whether blocks of `from` are those of the artifact's `to`, which need only be moved to its
// planes.
bool is_kept(std::string_view from, spec::WeightType to);

// Moves a row of such blocks to the planes, bit by bit. Only a block whose scale is subnormal, as
// no artifact holds, is quantized again (exporter/quantize.h).
RowReport keep_row(spec::WeightType type, std::span<const std::byte> blocks,
                   std::span<std::byte> values, std::span<std::byte> scales);

}  // namespace tandem::exporter
