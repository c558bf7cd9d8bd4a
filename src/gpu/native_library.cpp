// The WebGPU libraries that differ from webgpu.h or extend it: Dawn and wgpu-native.
#include "gpu/native_library.h"

#include <dlfcn.h>

#include <iterator>

#include "gpu/native.h"

namespace tandem::gpu {
namespace {

// A function that the standard header lacks, or null.
template <class Function>
Function* extension(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

// Known by wgpuDeviceTick. It switches by its toggles what the standard does not.
class Dawn : public Library {
 public:
  const WGPUChainedStruct* device_extension(bool bounds_checks) const override {
    return bounds_checks ? &checked_.chain : &unchecked_.chain;
  }

 private:
  // Extends WGPUDeviceDescriptor.
  struct Toggles {
    static constexpr auto stype = static_cast<WGPUSType>(0x0005000A);
    WGPUChainedStruct chain{nullptr, stype};
    size_t enabled_count = 0;
    const char* const* enabled = nullptr;
    size_t disabled_count = 0;
    const char* const* disabled = nullptr;
  };
  // Kernels write all workgroup memory that they read; zeroing it first costs most of the time that
  // a software adapter takes to compile them.
  static constexpr const char* enabled[] = {"disable_workgroup_init", "disable_robustness"};
  // Timestamps are rounded to 65 us otherwise, which is longer than most dispatches take.
  static constexpr const char* disabled[] = {"timestamp_quantization"};

  Toggles checked_{
      .enabled_count = 1, .enabled = enabled, .disabled_count = 1, .disabled = disabled};
  Toggles unchecked_{
      .enabled_count = 2, .enabled = enabled, .disabled_count = 1, .disabled = disabled};
};

// Known by wgpuDevicePoll. Calls back at once, before the call that takes the callback returns, but
// for mappings: those wait in wgpuDevicePoll. A future is the number of the submission before it.
class WgpuNative : public Library {
 public:
  WGPUFeatureName subgroups() const override { return static_cast<WGPUFeatureName>(0x00030021); }

  // Every adapter has it; the compiler replaces what the hardware lacks.
  bool has_dp4a(WGPUInstance) const override { return true; }

  void wait(WGPUInstance, WGPUDevice device, WGPUFuture future,
            uint64_t nanoseconds) const override {
    if (future.id != 0) poll_(device, nanoseconds > 0, &future.id);
  }

  // The compiler does not know the directive, and subgroups need none there. The text keeps its
  // length, so that the compiler's positions are the file's.
  void adapt(std::string& wgsl) const override {
    constexpr std::string_view directive = "enable subgroups;";
    const size_t at = wgsl.find(directive);
    if (at != std::string::npos) wgsl.replace(at, directive.size(), directive.size(), ' ');
  }

  WGPUShaderModule create_shader_module(WGPUDevice device,
                                        const WGPUShaderModuleDescriptor& descriptor,
                                        bool bounds_checks) const override {
    if (bounds_checks) return Library::create_shader_module(device, descriptor, true);
    return create_unchecked_(device, &descriptor, 0);
  }

  WGPUFuture create_pipeline(
      WGPUDevice device, const WGPUComputePipelineDescriptor& descriptor,
      const WGPUCreateComputePipelineAsyncCallbackInfo& done) const override {
    ErrorScope scope(device, WGPUErrorFilter_Validation);
    PipelineOwner pipeline(wgpuDeviceCreateComputePipeline(device, &descriptor));
    scope.end();
    const bool valid = !scope.error;
    done.callback(valid ? WGPUCreatePipelineAsyncStatus_Success
                        : WGPUCreatePipelineAsyncStatus_ValidationError,
                  valid ? pipeline.release() : nullptr,
                  valid ? WGPUStringView{} : to_webgpu(scope.error->message), done.userdata1,
                  done.userdata2);
    return {};
  }

  // Every error is one of validation here.
  ErrorCode error_code(WGPUErrorType type, std::string_view message) const override {
    if (message.find("Not enough memory left") != message.npos) return ErrorCode::out_of_memory;
    if (message.find("Parent device is lost") != message.npos) return ErrorCode::device_lost;
    return Library::error_code(type, message);
  }

  // A loss is not called back: the errors of later calls tell of it.
  void destroy(WGPUDevice device) const override {
    wgpuDeviceDestroy(device);
    const EncoderOwner refused(wgpuDeviceCreateCommandEncoder(device, nullptr));
  }

  uint64_t submit(WGPUQueue queue, WGPUCommandBuffer commands) const override {
    return submit_(queue, 1, &commands);
  }

  WGPUFuture map(WGPUBuffer buffer, size_t bytes, uint64_t submission,
                 const WGPUBufferMapCallbackInfo& mapped) const override {
    Library::map(buffer, bytes, submission, mapped);
    return {submission};
  }

  double timestamp_ns(WGPUQueue queue) const override { return timestamp_period_(queue); }

 private:
  using Poll = WGPUBool(WGPUDevice, WGPUBool wait, const uint64_t* submission);
  using Submit = uint64_t(WGPUQueue, size_t, const WGPUCommandBuffer*);
  using TimestampPeriod = float(WGPUQueue);
  using CreateShaderModule = WGPUShaderModule(WGPUDevice, const WGPUShaderModuleDescriptor*,
                                              uint64_t checks);
  Poll* poll_ = extension<Poll>("wgpuDevicePoll");
  Submit* submit_ = extension<Submit>("wgpuQueueSubmitForIndex");
  TimestampPeriod* timestamp_period_ = extension<TimestampPeriod>("wgpuQueueGetTimestampPeriod");
  CreateShaderModule* create_unchecked_ =
      extension<CreateShaderModule>("wgpuDeviceCreateShaderModuleTrusted");
};

}  // namespace

const Library& Library::get() {
  static const Library standard;
  static const Dawn dawn;
  static const WgpuNative wgpu_native;
  static const Library& library = extension<void()>("wgpuDevicePoll")   ? wgpu_native
                                  : extension<void()>("wgpuDeviceTick") ? dawn
                                                                        : standard;
  return library;
}

bool Library::has_dp4a(WGPUInstance instance) const {
  return wgpuInstanceHasWGSLLanguageFeature(
             instance, WGPUWGSLLanguageFeatureName_Packed4x8IntegerDotProduct) != 0;
}

void Library::wait(WGPUInstance instance, WGPUDevice, WGPUFuture future,
                   uint64_t nanoseconds) const {
  WGPUFutureWaitInfo info = WGPU_FUTURE_WAIT_INFO_INIT;
  info.future = future;
  wgpuInstanceWaitAny(instance, 1, &info, nanoseconds);
}

WGPUShaderModule Library::create_shader_module(WGPUDevice device,
                                               const WGPUShaderModuleDescriptor& descriptor,
                                               bool) const {
  return wgpuDeviceCreateShaderModule(device, &descriptor);
}

WGPUFuture Library::create_pipeline(WGPUDevice device,
                                    const WGPUComputePipelineDescriptor& descriptor,
                                    const WGPUCreateComputePipelineAsyncCallbackInfo& done) const {
  return wgpuDeviceCreateComputePipelineAsync(device, &descriptor, done);
}

ErrorCode Library::error_code(WGPUErrorType type, std::string_view) const {
  switch (type) {
    case WGPUErrorType_OutOfMemory:
      return ErrorCode::out_of_memory;
    case WGPUErrorType_Validation:
      return ErrorCode::gpu_validation;
    default:
      return ErrorCode::internal;
  }
}

uint64_t Library::submit(WGPUQueue queue, WGPUCommandBuffer commands) const {
  wgpuQueueSubmit(queue, 1, &commands);
  return 0;
}

WGPUFuture Library::map(WGPUBuffer buffer, size_t bytes, uint64_t,
                        const WGPUBufferMapCallbackInfo& mapped) const {
  return wgpuBufferMapAsync(buffer, WGPUMapMode_Read, 0, bytes, mapped);
}

}  // namespace tandem::gpu
