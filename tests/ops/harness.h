// What the tests of operators share: seeded data, and weight matrices of every type on the host
// and, in parts, on the GPU.
#pragma once

#include <gtest/gtest.h>

#include <span>
#include <vector>

#include "ops/op.h"
#include "support/device.h"

namespace tandem::test {

// `count` values, uniform in [-scale, scale).
std::vector<float> random_floats(size_t count, uint32_t seed, float scale = 1);

// A matrix with the memory that it lies in.
struct TestMatrix {
  spec::WeightType type = spec::WeightType::f32;
  uint32_t rows = 0;
  uint32_t columns = 0;
  std::vector<std::byte> values;
  std::vector<std::byte> scales;

  ops::HostMatrix host() const { return {type, rows, columns, values, scales}; }
};
// Rounds `weights` [rows, columns] to the type: GGML's rule for the quantized ones.
TestMatrix quantize(spec::WeightType type, uint32_t rows, uint32_t columns,
                    std::span<const float> weights);
TestMatrix random_matrix(spec::WeightType type, uint32_t rows, uint32_t columns, uint32_t seed);

struct GpuMatrix {
  ops::Matrix matrix;
  std::vector<gpu::Buffer> buffers;
};
// In parts of `rows_per_part` rows (0: one part), each plane of a part in a buffer of its own.
GpuMatrix upload(const TestMatrix& matrix, uint32_t rows_per_part = 0,
                 gpu::Device& device = test_device());

gpu::Buffer upload(const ops::Step& step, gpu::Device& device = test_device());

// Rows of `columns` as they lie in lane order (ops/op.h).
std::vector<float> in_lane_order(std::span<const float> rows, uint32_t columns);
// Rows of `columns`, given column by column, in any format.
gpu::Buffer upload_rows(ops::RowFormat format, uint32_t columns, std::span<const float> rows,
                        gpu::Device& device = test_device());

// Whether `words` are `rows` as int8: d within the rounding of a product, and q within half a step,
// or where a division that rounded otherwise may take a value that lies between two steps; the sum
// is that of q.
testing::AssertionResult is_int8(std::span<const uint32_t> words, uint32_t columns,
                                 std::span<const float> rows);

// Not written since the buffer was made `poisoned`.
bool is_poison(float value);

}  // namespace tandem::test
