#include "model/weights.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace tandem::model {
namespace {

tl::unexpected<Error> unknown_plane(std::string_view plane) {
  return fail(ErrorCode::not_found, "weight plane {}: the model has none of this name", plane);
}

Result<void> check_range(std::string_view plane, uint64_t bytes, uint64_t offset, uint64_t count) {
  if (offset <= bytes && count <= bytes - offset) return {};
  return fail(ErrorCode::bad_value, "weight plane {}: {} bytes at {} leave its {} bytes", plane,
              count, offset, bytes);
}

}  // namespace

Result<Buffers> make_buffers(gpu::Device& device, const std::vector<PlannedBuffer>& planned) {
  Buffers buffers;
  for (const PlannedBuffer& buffer : planned) {
    TRY_ASSIGN(gpu::Buffer made, device.make_buffer(buffer.bytes, buffer.name));
    buffers.emplace(buffer.name, std::move(made));
  }
  return buffers;
}

Result<DeviceWeights> DeviceWeights::make(gpu::Device& device, const Plan& plan) {
  DeviceWeights weights;
  weights.device_ = &device;
  TRY_ASSIGN(weights.buffers_, make_buffers(device, plan.weights));
  for (const PlannedTensor& planned : plan.tensors) {
    const spec::Tensor& tensor = planned.tensor;
    ops::Matrix matrix{planned.type, tensor.rows, tensor.columns, {}};
    for (uint32_t part = 0; part < planned.parts(); ++part) {
      const uint32_t first = part * planned.part_rows;
      matrix.parts.push_back({first, std::min(planned.part_rows, tensor.rows - first), {}, {}});
    }
    for (const spec::PlaneLayout& layout : spec::planes(planned.type, tensor.columns)) {
      Plane plane{planned.part_rows * layout.bytes_per_row, tensor.rows * layout.bytes_per_row, {}};
      for (uint32_t part = 0; part < planned.parts(); ++part) {
        const gpu::View view =
            weights.buffers_.at(part_name(tensor.name, layout.suffix, part)).view();
        plane.parts.push_back(view);
        (layout.suffix == "scales" ? matrix.parts[part].scales : matrix.parts[part].values) = view;
      }
      weights.planes_.emplace(fmt::format("{}.{}", tensor.name, layout.suffix), std::move(plane));
    }
    weights.matrices_.emplace(tensor.name, std::move(matrix));
  }
  return weights;
}

Result<std::vector<gpu::View>> DeviceWeights::places(std::string_view name, uint64_t offset,
                                                     uint64_t bytes) const {
  const auto found = planes_.find(name);
  if (found == planes_.end()) return unknown_plane(name);
  const Plane& plane = found->second;
  TRY(check_range(name, plane.bytes, offset, bytes));
  std::vector<gpu::View> places;
  while (bytes > 0) {
    const uint64_t within = offset % plane.part_bytes;
    const uint64_t count = std::min(bytes, plane.part_bytes - within);
    places.push_back(plane.parts[offset / plane.part_bytes].part(within, count));
    offset += count;
    bytes -= count;
  }
  return places;
}

Result<void> DeviceWeights::write(std::string_view name, uint64_t offset,
                                  std::span<const std::byte> bytes) {
  TRY_ASSIGN(const std::vector<gpu::View> views, places(name, offset, bytes.size()));
  for (const gpu::View& view : views) {
    // The GPU takes multiples of 4 bytes.
    const uint64_t whole = view.bytes / 4 * 4;
    if (whole > 0) TRY(device_->write(view.part(0, whole), bytes.first(whole)));
    if (whole < view.bytes) {
      std::byte last[4] = {};
      std::memcpy(last, bytes.data() + whole, view.bytes - whole);
      TRY(device_->write(view.part(whole, 4), last));
    }
    bytes = bytes.subspan(view.bytes);
  }
  return {};
}

Result<HostWeights> HostWeights::make(const std::vector<spec::Tensor>& tensors,
                                      const TensorTypes& types) {
  HostWeights weights;
  for (const spec::Tensor& tensor : tensors) {
    const auto type = types.find(tensor.name);
    const std::vector<spec::PlaneLayout> layout = type == types.end()
                                                      ? std::vector<spec::PlaneLayout>{}
                                                      : spec::planes(type->second, tensor.columns);
    if (layout.empty()) {
      return fail(ErrorCode::bad_value,
                  "tensor {}: the artifact gives it no type that fits {} columns", tensor.name,
                  tensor.columns);
    }
    weights.tensors_.emplace(tensor.name, Tensor{type->second, tensor.rows, tensor.columns});
    for (const spec::PlaneLayout& plane : layout) {
      weights.planes_.emplace(fmt::format("{}.{}", tensor.name, plane.suffix),
                              std::vector<std::byte>(tensor.rows * plane.bytes_per_row));
    }
  }
  return weights;
}

Result<void> HostWeights::write(std::string_view name, uint64_t offset,
                                std::span<const std::byte> bytes) {
  const auto found = planes_.find(name);
  if (found == planes_.end()) return unknown_plane(name);
  TRY(check_range(name, found->second.size(), offset, bytes.size()));
  std::copy(bytes.begin(), bytes.end(), found->second.begin() + static_cast<ptrdiff_t>(offset));
  return {};
}

ops::HostMatrix HostWeights::matrix(std::string_view name) const {
  const Tensor& tensor = tensors_.find(name)->second;
  ops::HostMatrix matrix{tensor.type, tensor.rows, tensor.columns, {}, {}};
  for (const spec::PlaneLayout& layout : spec::planes(tensor.type, tensor.columns)) {
    const auto& plane = planes_.find(fmt::format("{}.{}", name, layout.suffix))->second;
    (layout.suffix == "scales" ? matrix.scales : matrix.values) = plane;
  }
  return matrix;
}

std::vector<float> HostWeights::row(std::string_view name, uint32_t row) const {
  const ops::HostMatrix matrix = this->matrix(name);
  std::vector<float> values(matrix.columns);
  ops::dequantize_row(matrix, row, values);
  return values;
}

}  // namespace tandem::model
