// Private to native_*.cpp and command_list.cpp: what they share. No other file may include it.
#pragma once

#include <webgpu.h>

#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "gpu/device.h"
#include "gpu/driver_errors.h"
#include "gpu/native_library.h"

namespace tandem::gpu {

struct SizedDispatch;

// Owners of WebGPU objects.
template <auto release>
struct Release {
  template <class Object>
  void operator()(Object* object) const {
    release(object);
  }
};
template <class Object, auto release>
using Owner = std::unique_ptr<std::remove_pointer_t<Object>, Release<release>>;

using InstanceOwner = Owner<WGPUInstance, wgpuInstanceRelease>;
using AdapterOwner = Owner<WGPUAdapter, wgpuAdapterRelease>;
using DeviceOwner = Owner<WGPUDevice, wgpuDeviceRelease>;
using QueueOwner = Owner<WGPUQueue, wgpuQueueRelease>;
using BufferOwner = Owner<WGPUBuffer, wgpuBufferRelease>;
using ShaderModuleOwner = Owner<WGPUShaderModule, wgpuShaderModuleRelease>;
using PipelineOwner = Owner<WGPUComputePipeline, wgpuComputePipelineRelease>;
using PipelineLayoutOwner = Owner<WGPUPipelineLayout, wgpuPipelineLayoutRelease>;
using BindGroupLayoutOwner = Owner<WGPUBindGroupLayout, wgpuBindGroupLayoutRelease>;
using BindGroup = Owner<WGPUBindGroup, wgpuBindGroupRelease>;
using EncoderOwner = Owner<WGPUCommandEncoder, wgpuCommandEncoderRelease>;
using PassOwner = Owner<WGPUComputePassEncoder, wgpuComputePassEncoderRelease>;
using CommandBufferOwner = Owner<WGPUCommandBuffer, wgpuCommandBufferRelease>;
using QuerySetOwner = Owner<WGPUQuerySet, wgpuQuerySetRelease>;

inline WGPUStringView to_webgpu(std::string_view text) { return {text.data(), text.size()}; }
inline std::string from_webgpu(WGPUStringView text) {
  if (!text.data) return {};
  return text.length == WGPU_STRLEN ? std::string(text.data) : std::string(text.data, text.length);
}

Error to_error(WGPUErrorType type, std::string message);

// Collects the errors of one type that the calls during its life cause. `end` gives the future
// after which `error` is final; the scope must stay in place until then.
class ErrorScope {
 public:
  ErrorScope(WGPUDevice device, WGPUErrorFilter filter);
  WGPUFuture end();
  bool ended = false;
  std::optional<Error> error;

 private:
  WGPUDevice device_;
};

struct GpuBuffer {
  BufferOwner buffer;
  uint64_t bytes = 0;
  std::string label;
};

struct CompiledKernel {
  std::string name;
  std::string description;  // the name and its constants
  std::vector<Access> bindings;
  BindGroupLayoutOwner layout;
  PipelineOwner pipeline;      // set when compiled
  std::optional<Error> error;  // set when refused
};

struct PendingKernel {
  Kernel kernel;
  std::unique_ptr<ErrorScope> scope;  // of its shader module, for the compiler's text
  WGPUFuture scope_end;
  WGPUFuture pipeline;
};

// The timestamps of one submission's passes: two for each, in query sets of its own.
class Timestamps {
 public:
  Timestamps() = default;  // of no pass
  // `dispatches` say what is timed; their times are still to come.
  Timestamps(WGPUDevice device, std::vector<DispatchTime> dispatches, GpuBuffer results);

  WGPUPassTimestampWrites writes(size_t pass) const;
  // Encodes the copy of all timestamps to the beginning of a buffer, after the passes.
  void resolve(WGPUCommandEncoder encoder, WGPUBuffer target) const;
  uint64_t bytes() const { return bytes_of(dispatches_.size()); }
  static uint64_t bytes_of(size_t passes) { return passes * 2 * sizeof(uint64_t); }
  // What the copied bytes say.
  std::vector<DispatchTime> times(const std::byte* resolved, double unit_ns) const;

 private:
  std::vector<DispatchTime> dispatches_;
  std::vector<QuerySetOwner> sets_;
  GpuBuffer results_;
};

struct Device::State {
  const Library& library = Library::get();
  // Destroyed in reverse order: the driver may report errors until the instance is gone.
  DriverErrors errors;
  InstanceOwner instance;
  DeviceOwner device;
  QueueOwner queue;
  AdapterInfo info;
  bool bounds_checks = true;

  // Numbers are never given twice, so that a stale view is found out.
  std::unordered_map<uint32_t, GpuBuffer> buffers;
  uint32_t last_buffer = 0;
  uint64_t freed_buffers = 0;
  uint64_t buffer_bytes = 0;

  std::deque<CompiledKernel> kernels;  // by number; a deque, as callbacks keep addresses
  std::unordered_map<std::string, Kernel> kernel_numbers;
  std::vector<PendingKernel> pending;
  double compile_ms = 0;

  std::vector<GpuBuffer> staging;  // idle buffers for readbacks
  std::set<std::string, std::less<>> labels;

  void wait(WGPUFuture future, uint64_t nanoseconds = forever) const {
    library.wait(instance.get(), device.get(), future, nanoseconds);
  }
  // The buffer of a view, if the view lies inside it.
  Result<WGPUBuffer> buffer_of(const View& view) const;
  // Makes a bind group of bindings that are checked.
  Result<BindGroup> bind(Kernel kernel, std::span<const Binding> bindings);
  // What a submission dispatches; refuses what cannot be.
  Result<std::vector<SizedDispatch>> sized_dispatches(const Device& of,
                                                      const Submission& submission) const;
  Result<GpuBuffer> create_buffer(uint64_t bytes, WGPUBufferUsage usage, std::string_view label);
  // A staging buffer of at least this size.
  Result<GpuBuffer> take_staging(uint64_t bytes);
  Result<Timestamps> make_timestamps(std::vector<DispatchTime> dispatches);
  // Encodes a copy of the view, if there is one, and of the times, to be mapped after the
  // submission.
  Result<std::shared_ptr<Readback::State>> copy_out(WGPUCommandEncoder encoder, const View& source,
                                                    Timestamps timestamps);
};

}  // namespace tandem::gpu
