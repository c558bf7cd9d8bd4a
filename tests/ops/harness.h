// What the tests of operators share: seeded data, and weight matrices of every type on the host
// and, in parts, on the GPU.
#pragma once

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
GpuMatrix upload(const TestMatrix& matrix, uint32_t rows_per_part = 0);

gpu::Buffer upload(const ops::Step& step);

// Rows of `columns` as they lie in lane order (ops/op.h).
std::vector<float> in_lane_order(std::span<const float> rows, uint32_t columns);

// Not written since the buffer was made `poisoned`.
bool is_poison(float value);

}  // namespace tandem::test
