// Instances, adapters and their capabilities, and the choice and opening of a device.
#include <algorithm>
#include <cctype>

#include "gpu/native.h"

namespace tandem::gpu {
namespace {

struct Adapter {
  AdapterOwner handle;
  AdapterInfo info;
};

Result<InstanceOwner> make_instance() {
  const WGPUInstanceFeatureName features[] = {WGPUInstanceFeatureName_TimedWaitAny};
  WGPUInstanceDescriptor descriptor = WGPU_INSTANCE_DESCRIPTOR_INIT;
  descriptor.requiredFeatureCount = std::size(features);
  descriptor.requiredFeatures = features;
  InstanceOwner instance(wgpuCreateInstance(&descriptor));
  if (!instance) {
    return fail(ErrorCode::unsupported, "{} gives no WebGPU instance with timed waits",
                TANDEM_WEBGPU_NAME);
  }
  return instance;
}

std::string_view backend_name(WGPUBackendType backend) {
  switch (backend) {
    case WGPUBackendType_Null:
      return "Null";
    case WGPUBackendType_WebGPU:
      return "WebGPU";
    case WGPUBackendType_D3D11:
      return "D3D11";
    case WGPUBackendType_D3D12:
      return "D3D12";
    case WGPUBackendType_Metal:
      return "Metal";
    case WGPUBackendType_Vulkan:
      return "Vulkan";
    case WGPUBackendType_OpenGL:
      return "OpenGL";
    case WGPUBackendType_OpenGLES:
      return "OpenGLES";
    default:
      return "unknown";
  }
}

Limits limits_of(const WGPULimits& limits) {
  return {
      .max_buffer_bytes = limits.maxBufferSize,
      .max_binding_bytes = limits.maxStorageBufferBindingSize,
      .binding_alignment =
          std::max(limits.minStorageBufferOffsetAlignment, limits.minUniformBufferOffsetAlignment),
      .max_workgroup_bytes = limits.maxComputeWorkgroupStorageSize,
      .max_workgroup_invocations = limits.maxComputeInvocationsPerWorkgroup,
      .max_workgroups_per_dimension = limits.maxComputeWorkgroupsPerDimension,
      .max_storage_buffers = limits.maxStorageBuffersPerShaderStage,
  };
}

AdapterInfo info_of(WGPUInstance instance, WGPUAdapter adapter) {
  const Library& library = Library::get();
  WGPUAdapterInfo native = WGPU_ADAPTER_INFO_INIT;
  wgpuAdapterGetInfo(adapter, &native);
  WGPULimits limits = WGPU_LIMITS_INIT;
  wgpuAdapterGetLimits(adapter, &limits);
  AdapterInfo info{
      .name = from_webgpu(native.device),
      .vendor = from_webgpu(native.vendor),
      .driver = from_webgpu(native.description),
      .backend = std::string(backend_name(native.backendType)),
      .library = TANDEM_WEBGPU_NAME,
      .software = native.adapterType == WGPUAdapterType_CPU,
      .timestamps = wgpuAdapterHasFeature(adapter, WGPUFeatureName_TimestampQuery) != 0,
      .limits = limits_of(limits),
      .tiers = {
          .subgroups = wgpuAdapterHasFeature(adapter, library.subgroups()) != 0,
          .dp4a = library.has_dp4a(instance),
          .f16 = wgpuAdapterHasFeature(adapter, WGPUFeatureName_ShaderF16) != 0,
      }};
  wgpuAdapterInfoFreeMembers(native);
  return info;
}

AdapterOwner request_adapter(WGPUInstance instance, WGPUPowerPreference power, bool fallback) {
  WGPURequestAdapterOptions options = WGPU_REQUEST_ADAPTER_OPTIONS_INIT;
  options.powerPreference = power;
  options.forceFallbackAdapter = fallback;
  WGPUAdapter adapter = nullptr;
  WGPURequestAdapterCallbackInfo callback = WGPU_REQUEST_ADAPTER_CALLBACK_INFO_INIT;
  callback.mode = WGPUCallbackMode_WaitAnyOnly;
  callback.userdata1 = &adapter;
  callback.callback = [](WGPURequestAdapterStatus, WGPUAdapter found, WGPUStringView, void* result,
                         void*) { *static_cast<WGPUAdapter*>(result) = found; };
  Library::get().wait(instance, nullptr, wgpuInstanceRequestAdapter(instance, &options, callback));
  return AdapterOwner(adapter);
}

// webgpu.h lists no adapters, it gives one per request: ask in every way and drop duplicates. The
// fastest comes first.
std::vector<Adapter> find_adapters(WGPUInstance instance) {
  struct Request {
    WGPUPowerPreference power;
    bool fallback;
  };
  constexpr Request requests[] = {{WGPUPowerPreference_HighPerformance, false},
                                  {WGPUPowerPreference_LowPower, false},
                                  {WGPUPowerPreference_Undefined, true}};
  std::vector<Adapter> found;
  for (const Request& request : requests) {
    AdapterOwner handle = request_adapter(instance, request.power, request.fallback);
    if (!handle) continue;
    AdapterInfo info = info_of(instance, handle.get());
    const bool known = std::any_of(found.begin(), found.end(), [&](const Adapter& other) {
      return other.info.name == info.name && other.info.backend == info.backend;
    });
    if (!known) found.push_back({std::move(handle), std::move(info)});
  }
  std::stable_partition(found.begin(), found.end(),
                        [](const Adapter& adapter) { return !adapter.info.software; });
  return found;
}

bool contains_ignoring_case(std::string_view text, std::string_view part) {
  const auto same = [](unsigned char a, unsigned char b) {
    return std::tolower(a) == std::tolower(b);
  };
  return std::search(text.begin(), text.end(), part.begin(), part.end(), same) != text.end();
}

Result<Adapter> choose_adapter(WGPUInstance instance, std::string_view wanted) {
  std::vector<Adapter> found = find_adapters(instance);
  if (found.empty()) {
    return fail(ErrorCode::no_adapter,
                "no WebGPU adapter: install a Vulkan driver, or a software one (VK_DRIVER_FILES "
                "names its file)");
  }
  std::string names;
  for (Adapter& adapter : found) {
    if ((wanted == "software" && adapter.info.software) ||
        contains_ignoring_case(adapter.info.name, wanted)) {
      return std::move(adapter);
    }
    names += fmt::format("{}\"{}\"", names.empty() ? "" : ", ", adapter.info.name);
  }
  return fail(ErrorCode::no_adapter, "no adapter matches \"{}\"; there are: {}", wanted, names);
}

// A limit that is asked for must be no better than the adapter's.
Result<void> check_limits(const Limits& asked, const Limits& adapter) {
  struct Row {
    std::string_view name;
    uint64_t asked;
    uint64_t most;
  };
  const Row rows[] = {
      {"max_buffer_bytes", asked.max_buffer_bytes, adapter.max_buffer_bytes},
      {"max_binding_bytes", asked.max_binding_bytes, adapter.max_binding_bytes},
      {"max_workgroup_bytes", asked.max_workgroup_bytes, adapter.max_workgroup_bytes},
      {"max_workgroup_invocations", asked.max_workgroup_invocations,
       adapter.max_workgroup_invocations},
      {"max_workgroups_per_dimension", asked.max_workgroups_per_dimension,
       adapter.max_workgroups_per_dimension},
      {"max_storage_buffers", asked.max_storage_buffers, adapter.max_storage_buffers}};
  for (const Row& row : rows) {
    if (row.asked == 0 || row.asked > row.most) {
      return fail(ErrorCode::limit_exceeded, "limit {} = {}, expected 1 to {} on this adapter",
                  row.name, row.asked, row.most);
    }
  }
  const uint32_t alignment = asked.binding_alignment;
  if (alignment < adapter.binding_alignment || (alignment & (alignment - 1)) != 0) {
    return fail(ErrorCode::limit_exceeded,
                "limit binding_alignment = {}, expected a power of two of at least {}", alignment,
                adapter.binding_alignment);
  }
  return {};
}

// All the adapter has, lowered to what is asked for. A device may grant more than it is asked for
// (never less than WebGPU's defaults), so Device checks the lower limits itself.
WGPULimits required_limits(WGPUAdapter adapter, const Limits& asked) {
  WGPULimits limits = WGPU_LIMITS_INIT;
  wgpuAdapterGetLimits(adapter, &limits);
  limits.maxBufferSize = asked.max_buffer_bytes;
  limits.maxStorageBufferBindingSize = asked.max_binding_bytes;
  limits.maxComputeWorkgroupStorageSize = asked.max_workgroup_bytes;
  limits.maxComputeInvocationsPerWorkgroup = asked.max_workgroup_invocations;
  limits.maxComputeWorkgroupsPerDimension = asked.max_workgroups_per_dimension;
  limits.maxStorageBuffersPerShaderStage = asked.max_storage_buffers;
  return limits;
}

void report_to(DriverErrors& errors, WGPUDeviceDescriptor& descriptor) {
  descriptor.deviceLostCallbackInfo.mode = WGPUCallbackMode_AllowSpontaneous;
  descriptor.deviceLostCallbackInfo.userdata1 = &errors;
  descriptor.deviceLostCallbackInfo.callback = [](WGPUDevice const*, WGPUDeviceLostReason,
                                                  WGPUStringView reason, void* store, void*) {
    static_cast<DriverErrors*>(store)->lose(from_webgpu(reason));
  };
  descriptor.uncapturedErrorCallbackInfo.userdata1 = &errors;
  descriptor.uncapturedErrorCallbackInfo.callback = [](WGPUDevice const*, WGPUErrorType type,
                                                       WGPUStringView message, void* store, void*) {
    static_cast<DriverErrors*>(store)->store(to_error(type, from_webgpu(message)));
  };
}

// A device with the timestamps, tiers and limits of `info`.
Result<DeviceOwner> request_device(WGPUInstance instance, WGPUAdapter adapter,
                                   const AdapterInfo& info, bool bounds_checks,
                                   DriverErrors& errors) {
  const Library& library = Library::get();
  std::vector<WGPUFeatureName> features;
  if (info.tiers.subgroups) features.push_back(library.subgroups());
  if (info.tiers.f16) features.push_back(WGPUFeatureName_ShaderF16);
  if (info.timestamps) features.push_back(WGPUFeatureName_TimestampQuery);
  const WGPULimits limits = required_limits(adapter, info.limits);
  WGPUDeviceDescriptor descriptor = WGPU_DEVICE_DESCRIPTOR_INIT;
  descriptor.requiredFeatureCount = features.size();
  descriptor.requiredFeatures = features.data();
  descriptor.requiredLimits = &limits;
  report_to(errors, descriptor);
  descriptor.nextInChain = const_cast<WGPUChainedStruct*>(library.device_extension(bounds_checks));

  struct Answer {
    WGPUDevice device = nullptr;
    std::string message;
  } answer;
  WGPURequestDeviceCallbackInfo callback = WGPU_REQUEST_DEVICE_CALLBACK_INFO_INIT;
  callback.mode = WGPUCallbackMode_WaitAnyOnly;
  callback.userdata1 = &answer;
  callback.callback = [](WGPURequestDeviceStatus, WGPUDevice device, WGPUStringView message,
                         void* result, void*) {
    *static_cast<Answer*>(result) = {device, from_webgpu(message)};
  };
  library.wait(instance, nullptr, wgpuAdapterRequestDevice(adapter, &descriptor, callback));
  if (!answer.device) {
    return fail(ErrorCode::no_adapter, "adapter \"{}\" gives no device: {}", info.name,
                answer.message);
  }
  return DeviceOwner(answer.device);
}

}  // namespace

Result<std::vector<AdapterInfo>> adapters() {
  TRY_ASSIGN(const InstanceOwner instance, make_instance());
  std::vector<AdapterInfo> infos;
  for (Adapter& adapter : find_adapters(instance.get())) infos.push_back(std::move(adapter.info));
  return infos;
}

Result<AdapterInfo> adapter(std::string_view wanted) {
  TRY_ASSIGN(const InstanceOwner instance, make_instance());
  TRY_ASSIGN(Adapter chosen, choose_adapter(instance.get(), wanted));
  return std::move(chosen.info);
}

Result<std::unique_ptr<Device>> Device::open(const DeviceOptions& options) {
  auto state = std::make_unique<State>();
  TRY_ASSIGN(state->instance, make_instance());
  TRY_ASSIGN(const Adapter adapter, choose_adapter(state->instance.get(), options.adapter));
  state->info = adapter.info;
  state->info.timestamps &= options.timestamps;
  Tiers& tiers = state->info.tiers;
  tiers.subgroups &= !options.disabled.subgroups;
  tiers.dp4a &= !options.disabled.dp4a;
  tiers.f16 &= !options.disabled.f16;
  if (options.limits) {
    TRY(check_limits(*options.limits, adapter.info.limits));
    state->info.limits = *options.limits;
  }
  state->bounds_checks = options.bounds_checks;
  TRY_ASSIGN(state->device, request_device(state->instance.get(), adapter.handle.get(), state->info,
                                           options.bounds_checks, state->errors));
  state->queue.reset(wgpuDeviceGetQueue(state->device.get()));
  return std::unique_ptr<Device>(new Device(std::move(state)));
}

}  // namespace tandem::gpu
