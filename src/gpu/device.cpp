// What all implementations of device.h have in common.
#include "gpu/device.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "gpu/checks.h"

namespace tandem::gpu {
namespace {

// What WebGPU grants every uniform binding.
constexpr uint64_t max_uniform_bytes = 65536;

std::string_view access_name(Access access) {
  switch (access) {
    case Access::uniform:
      return "uniform";
    case Access::read:
      return "read";
    case Access::read_write:
      return "read_write";
  }
  return "unknown";
}

std::string describe(const View& view) {
  return fmt::format("[{}, {}) of buffer {}", view.offset, view.offset + view.bytes, view.buffer);
}

// What one binding must be by itself.
Result<void> check_binding(std::string_view kernel, size_t number, Access declared,
                           const Binding& binding, const Limits& limits) {
  const auto refuse = [&](ErrorCode code, std::string_view found, std::string_view expected) {
    return fail(code, "kernel {}, binding {}: {}, expected {}", kernel, number, found, expected);
  };
  const View& view = binding.view;
  if (binding.access != declared) {
    return refuse(ErrorCode::gpu_validation, access_name(binding.access), access_name(declared));
  }
  if (view.offset % limits.binding_alignment != 0) {
    return refuse(ErrorCode::gpu_validation, fmt::format("offset {}", view.offset),
                  fmt::format("a multiple of {}", limits.binding_alignment));
  }
  if (view.bytes == 0 || view.bytes % 4 != 0) {
    return refuse(ErrorCode::gpu_validation, fmt::format("{} bytes", view.bytes),
                  "a multiple of 4 above 0");
  }
  const uint64_t most =
      binding.access == Access::uniform ? max_uniform_bytes : limits.max_binding_bytes;
  if (view.bytes > most) {
    return refuse(ErrorCode::limit_exceeded, fmt::format("{} bytes", view.bytes),
                  fmt::format("at most {}", most));
  }
  return {};
}

// WebGPU tracks the use of whole buffers within a dispatch: one that is bound read_write may be
// bound again only read_write, and only elsewhere.
Result<void> check_aliasing(std::string_view kernel, std::span<const Binding> bindings) {
  for (size_t i = 0; i < bindings.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      const auto& [a, a_access] = bindings[i];
      const auto& [b, b_access] = bindings[j];
      const bool writes = a_access == Access::read_write || b_access == Access::read_write;
      if (a.buffer != b.buffer || !writes) continue;
      const bool overlap = a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
      if (!overlap && a_access == b_access) continue;
      return fail(ErrorCode::gpu_validation,
                  "kernel {}: binding {} ({} {}) and binding {} ({} {}) {}", kernel, j,
                  access_name(b_access), describe(b), i, access_name(a_access), describe(a),
                  overlap ? "overlap, expected apart, as one is written"
                          : "share a buffer, expected two, as one is read and one is written");
    }
  }
  return {};
}

}  // namespace

std::vector<std::string_view> tier_names(const Tiers& tiers) {
  std::vector<std::string_view> names = {"base"};
  if (tiers.subgroups) names.push_back("subgroups");
  if (tiers.dp4a) names.push_back("dp4a");
  if (tiers.f16) names.push_back("f16");
  return names;
}

Result<void> check_new_buffer(uint64_t bytes, std::string_view label, const Limits& limits) {
  if (bytes == 0 || bytes % 4 != 0) {
    return fail(ErrorCode::invalid_argument,
                "buffer {} of {} bytes, expected a multiple of 4 above 0", label, bytes);
  }
  if (bytes > limits.max_buffer_bytes) {
    return fail(ErrorCode::limit_exceeded, "buffer {} of {} bytes, expected at most {}", label,
                bytes, limits.max_buffer_bytes);
  }
  return {};
}

Result<void> check_inside(const View& view, uint64_t buffer_bytes, std::string_view buffer) {
  if (view.offset <= buffer_bytes && view.bytes <= buffer_bytes - view.offset) return {};
  return fail(ErrorCode::gpu_validation,
              "a view of {} bytes at offset {} of buffer {}, which has {} bytes", view.bytes,
              view.offset, buffer, buffer_bytes);
}

Result<void> check_write(const View& view, uint64_t bytes) {
  if (bytes > view.bytes) {
    return fail(ErrorCode::gpu_validation, "a write of {} bytes into a view of {} bytes", bytes,
                view.bytes);
  }
  if (view.offset % 4 != 0 || bytes % 4 != 0) {
    return fail(ErrorCode::gpu_validation,
                "a write of {} bytes at offset {}, expected multiples of 4", bytes, view.offset);
  }
  return {};
}

Result<void> check_read_back(const View& view) {
  if (view.bytes != 0 && view.offset % 4 == 0 && view.bytes % 4 == 0) return {};
  return fail(ErrorCode::gpu_validation,
              "a readback of {} bytes at offset {}, expected multiples of 4, not empty", view.bytes,
              view.offset);
}

Result<void> check_storage_buffers(std::string_view kernel, std::span<const Access> declared,
                                   const Limits& limits) {
  const auto storage_buffers = std::count_if(
      declared.begin(), declared.end(), [](Access access) { return access != Access::uniform; });
  if (static_cast<uint64_t>(storage_buffers) <= limits.max_storage_buffers) return {};
  return fail(ErrorCode::limit_exceeded, "kernel {} binds {} storage buffers, expected at most {}",
              kernel, storage_buffers, limits.max_storage_buffers);
}

Result<void> check_bindings(std::string_view kernel, std::span<const Access> declared,
                            std::span<const Binding> bindings, const Limits& limits) {
  if (bindings.size() != declared.size()) {
    return fail(ErrorCode::gpu_validation, "kernel {}: {} bindings, expected {}", kernel,
                bindings.size(), declared.size());
  }
  for (size_t i = 0; i < bindings.size(); ++i) {
    TRY(check_binding(kernel, i, declared[i], bindings[i], limits));
  }
  return check_aliasing(kernel, bindings);
}

std::string describe(std::string_view kernel, std::span<const Constant> constants) {
  std::vector<Constant> sorted(constants.begin(), constants.end());
  std::sort(sorted.begin(), sorted.end(),
            [](const Constant& a, const Constant& b) { return a.name < b.name; });
  std::string description(kernel);
  for (const Constant& constant : sorted) {
    description += fmt::format(" {}={}", constant.name, constant.value);
  }
  return description;
}

DispatchInfo info_of(std::string_view label, Grid grid, std::span<const Binding> bindings,
                     const std::optional<Traffic>& traffic) {
  DispatchInfo info{.kernel = label, .grid = grid, .traffic = traffic};
  for (const Binding& binding : bindings) {
    info.bytes_read += binding.view.bytes;
    if (binding.access == Access::read_write) info.bytes_written += binding.view.bytes;
  }
  return info;
}

Result<Workgroups> sized(std::string_view kernel, const Grid& grid, const Extent& extent,
                         const Limits& limits) {
  const auto folded = workgroups(grid, extent).and_then([&](uint64_t count) {
    return fold(count, limits.max_workgroups_per_dimension);
  });
  if (folded) return *folded;
  return fail(folded.error().code, "kernel {}: {}", kernel, folded.error().message);
}

Result<Kernel> Device::kernel(std::string_view name, std::span<const Constant> constants) {
  const std::span<const Wgsl> all = kernels();
  const auto found = std::lower_bound(
      all.begin(), all.end(), name,
      [](const Wgsl& kernel, std::string_view wanted) { return kernel.name < wanted; });
  if (found == all.end() || found->name != name) {
    return fail(ErrorCode::not_found, "kernel {} is not one of the {} embedded ones", name,
                all.size());
  }
  return kernel_from_source(name, found->source, found->bindings, constants);
}

Result<std::vector<std::byte>> Device::read(View view) {
  TRY_ASSIGN(Readback readback, submit({.read_back = view}));
  TRY(wait(readback));
  return readback.take();
}

Buffer::Buffer(Buffer&& other) noexcept
    : device_(std::exchange(other.device_, nullptr)),
      id_(std::exchange(other.id_, 0)),
      bytes_(std::exchange(other.bytes_, 0)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  Buffer moved(std::move(other));
  std::swap(device_, moved.device_);
  std::swap(id_, moved.id_);
  std::swap(bytes_, moved.bytes_);
  return *this;
}

}  // namespace tandem::gpu
