// A device's errors, buffers and writes.
#include "gpu/checks.h"
#include "gpu/native.h"

namespace tandem::gpu {

Error to_error(WGPUErrorType type, std::string message) {
  const ErrorCode code = Library::get().error_code(type, message);
  return {code, std::move(message)};
}

ErrorScope::ErrorScope(WGPUDevice device, WGPUErrorFilter filter) : device_(device) {
  wgpuDevicePushErrorScope(device, filter);
}

WGPUFuture ErrorScope::end() {
  WGPUPopErrorScopeCallbackInfo callback = WGPU_POP_ERROR_SCOPE_CALLBACK_INFO_INIT;
  callback.mode = WGPUCallbackMode_WaitAnyOnly;
  callback.userdata1 = this;
  callback.callback = [](WGPUPopErrorScopeStatus, WGPUErrorType type, WGPUStringView message,
                         void* scope, void*) {
    ErrorScope& self = *static_cast<ErrorScope*>(scope);
    self.ended = true;
    if (type != WGPUErrorType_NoError) self.error = to_error(type, from_webgpu(message));
  };
  return wgpuDevicePopErrorScope(device_, callback);
}

Result<WGPUBuffer> Device::State::buffer_of(const View& view) const {
  const auto found = buffers.find(view.buffer);
  if (found == buffers.end()) {
    return fail(ErrorCode::gpu_validation, "a view of buffer {}, which does not exist (any more)",
                view.buffer);
  }
  const GpuBuffer& buffer = found->second;
  TRY(check_inside(view, buffer.bytes, buffer.label));
  return buffer.buffer.get();
}

Result<GpuBuffer> Device::State::create_buffer(uint64_t bytes, WGPUBufferUsage usage,
                                               std::string_view label) {
  WGPUBufferDescriptor descriptor = WGPU_BUFFER_DESCRIPTOR_INIT;
  descriptor.label = to_webgpu(label);
  descriptor.usage = usage;
  descriptor.size = bytes;
  ErrorScope validation(device.get(), WGPUErrorFilter_Validation);
  ErrorScope memory(device.get(), WGPUErrorFilter_OutOfMemory);
  BufferOwner buffer(wgpuDeviceCreateBuffer(device.get(), &descriptor));
  wait(memory.end());
  wait(validation.end());
  TRY(errors.take());
  for (const std::optional<Error>* error : {&memory.error, &validation.error}) {
    if (*error) {
      return fail((*error)->code, "buffer {} of {} bytes: {}", label, bytes, (*error)->message);
    }
  }
  if (!buffer) return fail(ErrorCode::out_of_memory, "buffer {} of {} bytes", label, bytes);
  return GpuBuffer{std::move(buffer), bytes, std::string(label)};
}

Device::Device(std::unique_ptr<State> state) : state_(std::move(state)) {}

Device::~Device() {
  // Compilations in flight hold addresses of the state.
  (void)finish_kernels();
}

const AdapterInfo& Device::info() const { return state_->info; }

Result<Buffer> Device::make_buffer(uint64_t bytes, std::string_view label) {
  TRY(state_->errors.take());
  TRY(check_new_buffer(bytes, label, state_->info.limits));
  TRY_ASSIGN(GpuBuffer buffer,
             state_->create_buffer(bytes,
                                   WGPUBufferUsage_Storage | WGPUBufferUsage_Uniform |
                                       WGPUBufferUsage_CopySrc | WGPUBufferUsage_CopyDst,
                                   label));
  const uint32_t id = ++state_->last_buffer;
  state_->buffers.emplace(id, std::move(buffer));
  state_->buffer_bytes += bytes;
  return Buffer(this, id, bytes);
}

Result<void> Device::write(View view, std::span<const std::byte> bytes) {
  TRY(state_->errors.take());
  TRY_ASSIGN(WGPUBuffer buffer, state_->buffer_of(view));
  TRY(check_write(view, bytes.size()));
  wgpuQueueWriteBuffer(state_->queue.get(), buffer, view.offset, bytes.data(), bytes.size());
  return state_->errors.take();
}

Census Device::census() const {
  return {.buffers = state_->buffers.size(),
          .buffer_bytes = state_->buffer_bytes,
          .kernels = state_->kernels.size(),
          .compile_ms = state_->compile_ms};
}

void Device::lose() { state_->library.destroy(state_->device.get()); }

Buffer::~Buffer() {
  if (!device_) return;
  Device::State& state = *device_->state_;
  const auto found = state.buffers.find(id_);
  // Frees the memory now, though bind groups may still refer to the buffer.
  wgpuBufferDestroy(found->second.buffer.get());
  state.buffer_bytes -= bytes_;
  state.buffers.erase(found);
  ++state.freed_buffers;
}

}  // namespace tandem::gpu
