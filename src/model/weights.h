// Weights by name: on the GPU in the parts that the plan made, on the host as whole planes.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/device.h"
#include "model/plan.h"
#include "ops/op.h"

namespace tandem::model {

// GPU buffers by name.
using Buffers = std::map<std::string, gpu::Buffer, std::less<>>;
Result<Buffers> make_buffers(gpu::Device& device, const std::vector<PlannedBuffer>& planned);

class DeviceWeights {
 public:
  static Result<DeviceWeights> make(gpu::Device& device, const Plan& plan);

  // Where a range of a plane ("layers.0.qkv.quants") lies, which may span parts. Ranges begin at
  // multiples of 4; only the end of a plane can be short of one, and its buffer is padded.
  Result<std::vector<gpu::View>> places(std::string_view plane, uint64_t offset,
                                        uint64_t bytes) const;
  Result<void> write(std::string_view plane, uint64_t offset, std::span<const std::byte> bytes);

  const ops::Matrix& matrix(std::string_view tensor) const {
    return matrices_.find(tensor)->second;
  }
  gpu::View vector(std::string_view tensor) const { return matrix(tensor).parts.front().values; }

 private:
  struct Plane {
    uint64_t part_bytes = 0;  // of every part but the last
    uint64_t bytes = 0;
    std::vector<gpu::View> parts;
  };
  gpu::Device* device_ = nullptr;
  Buffers buffers_;
  std::map<std::string, ops::Matrix, std::less<>> matrices_;
  std::map<std::string, Plane, std::less<>> planes_;
};

class HostWeights {
 public:
  static Result<HostWeights> make(const std::vector<spec::Tensor>& tensors,
                                  const TensorTypes& types);

  Result<void> write(std::string_view plane, uint64_t offset, std::span<const std::byte> bytes);

  ops::HostMatrix matrix(std::string_view tensor) const;
  // A vector, or one row of a matrix, as floats.
  std::vector<float> row(std::string_view tensor, uint32_t row = 0) const;

 private:
  struct Tensor {
    spec::WeightType type;
    uint32_t rows;
    uint32_t columns;
  };
  std::map<std::string, Tensor, std::less<>> tensors_;
  std::map<std::string, std::vector<std::byte>, std::less<>> planes_;
};

}  // namespace tandem::model
