// Private to the implementations of device.h: what a command list holds.
#pragma once

#include <vector>

#include "gpu/backend.h"

namespace tandem::gpu {

struct Dispatch {
  Kernel kernel;
  BindGroup bind_group;
  DispatchInfo info;
};

struct CommandList::State {
  Device* device;
  std::vector<Dispatch> dispatches;
  std::vector<uint32_t> buffers;  // all that it binds, which must live when it is submitted
  uint64_t freed_buffers = 0;     // of the device when they were last known to live

  Result<void> check_buffers(const Device::State& owner);
};

// A dispatch at its item's extent. Its command list owns what it points to.
struct SizedDispatch {
  const Dispatch* dispatch;
  const CompiledKernel* kernel;
  Extent extent;
  Workgroups workgroups;
};

// What is to be timed.
std::vector<DispatchTime> untimed(std::span<const SizedDispatch> dispatches);

}  // namespace tandem::gpu
