// Private to native_*.cpp: what WebGPU libraries do each in their own way. No other file knows
// which library it is.
#pragma once

#include <webgpu.h>

#include <string>
#include <string_view>

#include "tandem/error.h"

namespace tandem::gpu {

constexpr uint64_t forever = UINT64_MAX;

// What webgpu.h says; a library that differs overrides it.
class Library {
 public:
  // The library that the program runs with.
  static const Library& get();
  virtual ~Library() = default;

  virtual WGPUFeatureName subgroups() const { return WGPUFeatureName_Subgroups; }
  virtual bool has_dp4a(WGPUInstance instance) const;
  // An extension of WGPUDeviceDescriptor, or null.
  virtual const WGPUChainedStruct* device_extension(bool) const { return nullptr; }

  // Waits until the future has completed, and its callback run, or the time is over. The device is
  // null before there is one.
  virtual void wait(WGPUInstance instance, WGPUDevice device, WGPUFuture future,
                    uint64_t nanoseconds = forever) const;

  // Makes WGSL what the library's compiler takes.
  virtual void adapt(std::string&) const {}
  virtual WGPUShaderModule create_shader_module(WGPUDevice device,
                                                const WGPUShaderModuleDescriptor& descriptor,
                                                bool bounds_checks) const;
  virtual WGPUFuture create_pipeline(WGPUDevice device,
                                     const WGPUComputePipelineDescriptor& descriptor,
                                     const WGPUCreateComputePipelineAsyncCallbackInfo& done) const;

  virtual ErrorCode error_code(WGPUErrorType type, std::string_view message) const;
  // The loss is reported before this returns.
  virtual void destroy(WGPUDevice device) const { wgpuDeviceDestroy(device); }

  // Submits, and numbers the submission for `map`.
  virtual uint64_t submit(WGPUQueue queue, WGPUCommandBuffer commands) const;
  // Maps the first bytes of a buffer for reading, once that submission has run.
  virtual WGPUFuture map(WGPUBuffer buffer, size_t bytes, uint64_t submission,
                         const WGPUBufferMapCallbackInfo& mapped) const;
  // The nanoseconds of one unit of timestamps.
  virtual double timestamp_ns(WGPUQueue) const { return 1; }
};

}  // namespace tandem::gpu
