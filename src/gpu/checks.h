// Private to the implementations of device.h: what they refuse before a driver sees it, and what
// they say of kernels and dispatches.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "gpu/device.h"

namespace tandem::gpu {

Result<void> check_new_buffer(uint64_t bytes, std::string_view label, const Limits& limits);
// Whether a view lies inside its buffer.
Result<void> check_inside(const View& view, uint64_t buffer_bytes, std::string_view buffer);
Result<void> check_write(const View& view, uint64_t bytes);
Result<void> check_read_back(const View& view);

Result<void> check_storage_buffers(std::string_view kernel, std::span<const Access> declared,
                                   const Limits& limits);
// Everything that CommandList::dispatch refuses, but for views outside their buffers.
Result<void> check_bindings(std::string_view kernel, std::span<const Access> declared,
                            std::span<const Binding> bindings, const Limits& limits);

// The name and its constants, sorted: equal for equal requests of one source.
std::string describe(std::string_view kernel, std::span<const Constant> constants);

// `label` must live as long as the device.
DispatchInfo info_of(std::string_view label, Grid grid, std::span<const Binding> bindings,
                     const std::optional<Traffic>& traffic);

// The workgroups of a dispatch at its extent, folded.
Result<Workgroups> sized(std::string_view kernel, const Grid& grid, const Extent& extent,
                         const Limits& limits);

}  // namespace tandem::gpu
