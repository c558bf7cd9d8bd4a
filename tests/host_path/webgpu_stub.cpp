#include "host_path/webgpu_stub.h"

#include <webgpu.h>

#include <cstring>
#include <vector>

#include "ops/accept/accept.h"

namespace {

using tandem::ops::RoundRecord;

// Any object but a buffer.
template <class Handle>
Handle object() {
  static char any;
  return reinterpret_cast<Handle>(&any);
}

struct Buffer {
  std::vector<std::byte> mapped;
};

uint32_t rounds_left = 0;
uint32_t round_number = 0;

// What a round says: it is told from other readbacks by its size.
void fill(Buffer& buffer, size_t bytes) {
  buffer.mapped.assign(bytes, std::byte{0});
  if (bytes != sizeof(RoundRecord)) return;
  --rounds_left;
  const RoundRecord record{
      .number = ++round_number,
      .position = 8 + round_number,
      .rows = 1,
      .count = 1,
      .stop = rounds_left == 0 ? tandem::ops::StopCode::length : tandem::ops::StopCode::none,
      .targets = {42}};
  std::memcpy(buffer.mapped.data(), &record, sizeof(record));
}

}  // namespace

void tandem::test::stub_rounds(uint32_t rounds) {
  rounds_left = rounds;
  round_number = 0;
}

extern "C" {

WGPUInstance wgpuCreateInstance(const WGPUInstanceDescriptor*) { return object<WGPUInstance>(); }
WGPUBool wgpuInstanceHasWGSLLanguageFeature(WGPUInstance, WGPUWGSLLanguageFeatureName) { return 1; }
WGPUWaitStatus wgpuInstanceWaitAny(WGPUInstance, size_t, WGPUFutureWaitInfo*, uint64_t) {
  return WGPUWaitStatus_Success;
}
WGPUFuture wgpuInstanceRequestAdapter(WGPUInstance, const WGPURequestAdapterOptions*,
                                      WGPURequestAdapterCallbackInfo done) {
  done.callback(WGPURequestAdapterStatus_Success, object<WGPUAdapter>(), {}, done.userdata1,
                done.userdata2);
  return {};
}

WGPUStatus wgpuAdapterGetInfo(WGPUAdapter, WGPUAdapterInfo* info) {
  info->device = {"stub", 4};
  return WGPUStatus_Success;
}
void wgpuAdapterInfoFreeMembers(WGPUAdapterInfo) {}
WGPUStatus wgpuAdapterGetLimits(WGPUAdapter, WGPULimits* limits) {
  limits->maxBufferSize = limits->maxStorageBufferBindingSize = uint64_t{1} << 32;
  limits->minStorageBufferOffsetAlignment = limits->minUniformBufferOffsetAlignment = 256;
  limits->maxComputeWorkgroupStorageSize = 16384;
  limits->maxComputeInvocationsPerWorkgroup = 256;
  limits->maxComputeWorkgroupsPerDimension = 65535;
  limits->maxStorageBuffersPerShaderStage = 8;
  return WGPUStatus_Success;
}
WGPUBool wgpuAdapterHasFeature(WGPUAdapter, WGPUFeatureName) { return 0; }
WGPUFuture wgpuAdapterRequestDevice(WGPUAdapter, const WGPUDeviceDescriptor*,
                                    WGPURequestDeviceCallbackInfo done) {
  done.callback(WGPURequestDeviceStatus_Success, object<WGPUDevice>(), {}, done.userdata1,
                done.userdata2);
  return {};
}

WGPUQueue wgpuDeviceGetQueue(WGPUDevice) { return object<WGPUQueue>(); }
void wgpuDeviceDestroy(WGPUDevice) {}
void wgpuDevicePushErrorScope(WGPUDevice, WGPUErrorFilter) {}
WGPUFuture wgpuDevicePopErrorScope(WGPUDevice, WGPUPopErrorScopeCallbackInfo done) {
  done.callback(WGPUPopErrorScopeStatus_Success, WGPUErrorType_NoError, {}, done.userdata1,
                done.userdata2);
  return {};
}
WGPUBuffer wgpuDeviceCreateBuffer(WGPUDevice, const WGPUBufferDescriptor*) {
  return reinterpret_cast<WGPUBuffer>(new Buffer);
}
WGPUBindGroup wgpuDeviceCreateBindGroup(WGPUDevice, const WGPUBindGroupDescriptor*) {
  return object<WGPUBindGroup>();
}
WGPUBindGroupLayout wgpuDeviceCreateBindGroupLayout(WGPUDevice,
                                                    const WGPUBindGroupLayoutDescriptor*) {
  return object<WGPUBindGroupLayout>();
}
WGPUPipelineLayout wgpuDeviceCreatePipelineLayout(WGPUDevice, const WGPUPipelineLayoutDescriptor*) {
  return object<WGPUPipelineLayout>();
}
WGPUShaderModule wgpuDeviceCreateShaderModule(WGPUDevice, const WGPUShaderModuleDescriptor*) {
  return object<WGPUShaderModule>();
}
WGPUComputePipeline wgpuDeviceCreateComputePipeline(WGPUDevice,
                                                    const WGPUComputePipelineDescriptor*) {
  return object<WGPUComputePipeline>();
}
WGPUFuture wgpuDeviceCreateComputePipelineAsync(WGPUDevice, const WGPUComputePipelineDescriptor*,
                                                WGPUCreateComputePipelineAsyncCallbackInfo done) {
  done.callback(WGPUCreatePipelineAsyncStatus_Success, object<WGPUComputePipeline>(), {},
                done.userdata1, done.userdata2);
  return {};
}
WGPUQuerySet wgpuDeviceCreateQuerySet(WGPUDevice, const WGPUQuerySetDescriptor*) {
  return object<WGPUQuerySet>();
}
WGPUCommandEncoder wgpuDeviceCreateCommandEncoder(WGPUDevice, const WGPUCommandEncoderDescriptor*) {
  return object<WGPUCommandEncoder>();
}

WGPUComputePassEncoder wgpuCommandEncoderBeginComputePass(WGPUCommandEncoder,
                                                          const WGPUComputePassDescriptor*) {
  return object<WGPUComputePassEncoder>();
}
void wgpuCommandEncoderCopyBufferToBuffer(WGPUCommandEncoder, WGPUBuffer, uint64_t, WGPUBuffer,
                                          uint64_t, uint64_t) {}
void wgpuCommandEncoderResolveQuerySet(WGPUCommandEncoder, WGPUQuerySet, uint32_t, uint32_t,
                                       WGPUBuffer, uint64_t) {}
WGPUCommandBuffer wgpuCommandEncoderFinish(WGPUCommandEncoder, const WGPUCommandBufferDescriptor*) {
  return object<WGPUCommandBuffer>();
}
void wgpuComputePassEncoderSetPipeline(WGPUComputePassEncoder, WGPUComputePipeline) {}
void wgpuComputePassEncoderSetBindGroup(WGPUComputePassEncoder, uint32_t, WGPUBindGroup, size_t,
                                        const uint32_t*) {}
void wgpuComputePassEncoderDispatchWorkgroups(WGPUComputePassEncoder, uint32_t, uint32_t,
                                              uint32_t) {}
void wgpuComputePassEncoderEnd(WGPUComputePassEncoder) {}
void wgpuQueueWriteBuffer(WGPUQueue, WGPUBuffer, uint64_t, const void*, size_t) {}
void wgpuQueueSubmit(WGPUQueue, size_t, const WGPUCommandBuffer*) {}

WGPUFuture wgpuBufferMapAsync(WGPUBuffer buffer, WGPUMapMode, size_t, size_t bytes,
                              WGPUBufferMapCallbackInfo done) {
  fill(*reinterpret_cast<Buffer*>(buffer), bytes);
  done.callback(WGPUMapAsyncStatus_Success, {}, done.userdata1, done.userdata2);
  return {};
}
const void* wgpuBufferGetConstMappedRange(WGPUBuffer buffer, size_t offset, size_t) {
  return &reinterpret_cast<Buffer*>(buffer)->mapped[offset];
}
void wgpuBufferUnmap(WGPUBuffer) {}
void wgpuBufferDestroy(WGPUBuffer) {}
void wgpuBufferRelease(WGPUBuffer buffer) { delete reinterpret_cast<Buffer*>(buffer); }

void wgpuAdapterRelease(WGPUAdapter) {}
void wgpuBindGroupLayoutRelease(WGPUBindGroupLayout) {}
void wgpuBindGroupRelease(WGPUBindGroup) {}
void wgpuCommandBufferRelease(WGPUCommandBuffer) {}
void wgpuCommandEncoderRelease(WGPUCommandEncoder) {}
void wgpuComputePassEncoderRelease(WGPUComputePassEncoder) {}
void wgpuComputePipelineRelease(WGPUComputePipeline) {}
void wgpuDeviceRelease(WGPUDevice) {}
void wgpuInstanceRelease(WGPUInstance) {}
void wgpuPipelineLayoutRelease(WGPUPipelineLayout) {}
void wgpuQuerySetRelease(WGPUQuerySet) {}
void wgpuQueueRelease(WGPUQueue) {}
void wgpuShaderModuleRelease(WGPUShaderModule) {}

}  // extern "C"
