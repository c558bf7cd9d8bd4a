// Compilation of kernels, in the background.
#include <algorithm>
#include <chrono>

#include "gpu/checks.h"
#include "gpu/native.h"

namespace tandem::gpu {
namespace {

// Adds the time it lives to a sum of milliseconds.
class Stopwatch {
 public:
  explicit Stopwatch(double& sum) : sum_(sum) {}
  ~Stopwatch() {
    using Milliseconds = std::chrono::duration<double, std::milli>;
    sum_ += Milliseconds(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  double& sum_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

WGPUBufferBindingType binding_type(Access access) {
  switch (access) {
    case Access::uniform:
      return WGPUBufferBindingType_Uniform;
    case Access::read:
      return WGPUBufferBindingType_ReadOnlyStorage;
    case Access::read_write:
      return WGPUBufferBindingType_Storage;
  }
  return WGPUBufferBindingType_Undefined;
}

// Made from the declared bindings, so that bind groups need no compiled pipeline.
BindGroupLayoutOwner bind_group_layout(WGPUDevice device, std::span<const Access> bindings) {
  std::vector<WGPUBindGroupLayoutEntry> entries;
  for (const Access access : bindings) {
    WGPUBindGroupLayoutEntry entry = WGPU_BIND_GROUP_LAYOUT_ENTRY_INIT;
    entry.binding = static_cast<uint32_t>(entries.size());
    entry.visibility = WGPUShaderStage_Compute;
    entry.buffer.type = binding_type(access);
    entries.push_back(entry);
  }
  WGPUBindGroupLayoutDescriptor descriptor = WGPU_BIND_GROUP_LAYOUT_DESCRIPTOR_INIT;
  descriptor.entryCount = entries.size();
  descriptor.entries = entries.data();
  return BindGroupLayoutOwner(wgpuDeviceCreateBindGroupLayout(device, &descriptor));
}

ShaderModuleOwner shader_module(const Library& library, WGPUDevice device, std::string_view label,
                                std::string source, bool bounds_checks) {
  library.adapt(source);
  WGPUShaderSourceWGSL wgsl = WGPU_SHADER_SOURCE_WGSL_INIT;
  wgsl.code = to_webgpu(source);
  WGPUShaderModuleDescriptor descriptor = WGPU_SHADER_MODULE_DESCRIPTOR_INIT;
  descriptor.nextInChain = &wgsl.chain;
  descriptor.label = to_webgpu(label);
  return ShaderModuleOwner(library.create_shader_module(device, descriptor, bounds_checks));
}

WGPUFuture compile(const Library& library, WGPUDevice device, CompiledKernel& kernel,
                   WGPUShaderModule module, std::span<const Constant> constants) {
  WGPUBindGroupLayout layouts[] = {kernel.layout.get()};
  WGPUPipelineLayoutDescriptor layout_descriptor = WGPU_PIPELINE_LAYOUT_DESCRIPTOR_INIT;
  layout_descriptor.bindGroupLayoutCount = std::size(layouts);
  layout_descriptor.bindGroupLayouts = layouts;
  const PipelineLayoutOwner layout(wgpuDeviceCreatePipelineLayout(device, &layout_descriptor));

  std::vector<WGPUConstantEntry> entries;
  for (const Constant& constant : constants) {
    WGPUConstantEntry entry = WGPU_CONSTANT_ENTRY_INIT;
    entry.key = to_webgpu(constant.name);
    entry.value = constant.value;
    entries.push_back(entry);
  }
  WGPUComputePipelineDescriptor descriptor = WGPU_COMPUTE_PIPELINE_DESCRIPTOR_INIT;
  descriptor.label = to_webgpu(kernel.name);
  descriptor.layout = layout.get();
  descriptor.compute.module = module;
  descriptor.compute.entryPoint = to_webgpu("main");
  descriptor.compute.constantCount = entries.size();
  descriptor.compute.constants = entries.data();
  WGPUCreateComputePipelineAsyncCallbackInfo callback =
      WGPU_CREATE_COMPUTE_PIPELINE_ASYNC_CALLBACK_INFO_INIT;
  callback.mode = WGPUCallbackMode_WaitAnyOnly;
  callback.userdata1 = &kernel;
  callback.callback = [](WGPUCreatePipelineAsyncStatus status, WGPUComputePipeline pipeline,
                         WGPUStringView message, void* result, void*) {
    CompiledKernel& compiled = *static_cast<CompiledKernel*>(result);
    if (status == WGPUCreatePipelineAsyncStatus_Success) {
      compiled.pipeline.reset(pipeline);
    } else {
      compiled.error = Error{ErrorCode::gpu_validation, from_webgpu(message)};
    }
  };
  return library.create_pipeline(device, descriptor, callback);
}

}  // namespace

Result<Kernel> Device::kernel_from_source(std::string_view label, std::string_view source,
                                          std::span<const Access> bindings,
                                          std::span<const Constant> constants) {
  State& state = *state_;
  TRY(state.errors.take());
  TRY(check_storage_buffers(label, bindings, state.info.limits));
  const Stopwatch stopwatch(state.compile_ms);
  const Kernel number = static_cast<Kernel>(state.kernels.size());
  std::string description = describe(label, constants);
  const auto [request, is_new] =
      state.kernel_numbers.emplace(fmt::format("{}\n{}", description, source), number);
  if (!is_new) return request->second;

  CompiledKernel& kernel = state.kernels.emplace_back();
  kernel.name = label;
  kernel.description = std::move(description);
  kernel.bindings.assign(bindings.begin(), bindings.end());
  kernel.layout = bind_group_layout(state.device.get(), bindings);
  auto scope = std::make_unique<ErrorScope>(state.device.get(), WGPUErrorFilter_Validation);
  const ShaderModuleOwner module =
      shader_module(state.library, state.device.get(), label, source_for(source, state.info.tiers),
                    state.bounds_checks);
  const WGPUFuture scope_end = scope->end();
  const WGPUFuture pipeline =
      compile(state.library, state.device.get(), kernel, module.get(), constants);
  state.pending.push_back({number, std::move(scope), scope_end, pipeline});
  return number;
}

Result<uint32_t> Device::unfinished() {
  State& state = *state_;
  const auto unfinished = std::count_if(
      state.pending.begin(), state.pending.end(), [&state](const PendingKernel& pending) {
        state.wait(pending.scope_end, 0);
        state.wait(pending.pipeline, 0);
        const CompiledKernel& kernel = state.kernels[pending.kernel];
        return !pending.scope->ended || !(kernel.pipeline || kernel.error);
      });
  if (unfinished == 0) TRY(finish_kernels());
  return static_cast<uint32_t>(unfinished);
}

Result<void> Device::finish_kernels() {
  State& state = *state_;
  if (state.pending.empty()) return state.errors.take();
  const Stopwatch stopwatch(state.compile_ms);
  std::optional<Error> first_error;
  for (PendingKernel& pending : state.pending) {
    state.wait(pending.scope_end);
    state.wait(pending.pipeline);
    CompiledKernel& kernel = state.kernels[pending.kernel];
    if (pending.scope->error) kernel.error = std::move(pending.scope->error);
    if (!kernel.error) continue;
    kernel.error->message = fmt::format("kernel {}: {}", kernel.name, kernel.error->message);
    if (!first_error) first_error = kernel.error;
  }
  state.pending.clear();
  TRY(state.errors.take());
  if (first_error) return tl::unexpected<Error>(*std::move(first_error));
  return {};
}

}  // namespace tandem::gpu
