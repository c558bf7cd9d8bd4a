// What the tests of operators share: seeded data, weight matrices of every type on the host and in
// parts on the GPU, poisoned outputs, one dispatch run and read back.
#pragma once

#include <cstring>
#include <span>
#include <stdexcept>
#include <vector>

#include "gpu/device.h"
#include "ops/op.h"

namespace tandem::test {

// The value, or a failed test that says why there is none.
template <class T>
T need(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message);
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

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

// Bytes on the GPU, padded to whole words.
gpu::Buffer upload_bytes(gpu::Device& device, std::span<const std::byte> bytes);
template <class T>
gpu::Buffer upload(gpu::Device& device, const std::vector<T>& values) {
  return upload_bytes(device, std::as_bytes(std::span(values)));
}
inline gpu::Buffer upload_step(gpu::Device& device, const ops::Step& step) {
  return upload(device, std::vector{step});
}

struct GpuMatrix {
  ops::Matrix matrix;
  std::vector<gpu::Buffer> buffers;
};
// In parts of `rows_per_part` rows (0: one part), each plane of a part in a buffer of its own.
GpuMatrix upload(gpu::Device& device, const TestMatrix& matrix, uint32_t rows_per_part = 0);

// A NaN that no kernel makes. What still has these bits was not written.
inline constexpr uint32_t poison_bits = 0x7fc0dead;
bool is_poison(float value);
gpu::Buffer poisoned(gpu::Device& device, size_t count);

// Runs the commands for a step of at most `rows` rows that reads at most `positions` positions.
void run(gpu::Device& device, const gpu::CommandList& commands, uint32_t rows,
         uint32_t positions = 1);

template <class T>
std::vector<T> download(gpu::Device& device, const gpu::Buffer& buffer) {
  const std::vector<std::byte> bytes = need(device.read(buffer.view()));
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return values;
}

}  // namespace tandem::test
