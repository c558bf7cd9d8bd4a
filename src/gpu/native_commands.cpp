// Submissions and readbacks.
#include <algorithm>

#include "gpu/checks.h"
#include "gpu/command_list.h"

namespace tandem::gpu {
namespace {

// Staging buffers up to this size are kept for the next readback.
constexpr uint64_t max_idle_staging_bytes = uint64_t{4} << 20;

}  // namespace
// Owns a staging buffer that is being mapped, is mapped, or has been copied out: the timestamps,
// then the bytes that are read back.
struct Readback::State {
  Device::State* device;
  Timestamps timestamps;
  uint64_t bytes;
  GpuBuffer staging;
  std::optional<WGPUFuture> mapping;  // none before the submission
  bool finished = false;
  std::optional<Error> error;

  State(Device::State* owner, Timestamps queries, uint64_t byte_count, GpuBuffer buffer)
      : device(owner),
        timestamps(std::move(queries)),
        bytes(byte_count),
        staging(std::move(buffer)) {}

  ~State() {
    if (mapping) {
      wgpuBufferUnmap(staging.buffer.get());
      // An unmap ends a mapping under way, whose callback needs this state.
      if (!finished) device->wait(*mapping);
    }
    if (staging.bytes <= max_idle_staging_bytes && !device->errors.lost()) {
      device->staging.push_back(std::move(staging));
    }
  }

  uint64_t staged_bytes() const { return timestamps.bytes() + bytes; }

  void map(uint64_t submission) {
    WGPUBufferMapCallbackInfo callback = WGPU_BUFFER_MAP_CALLBACK_INFO_INIT;
    callback.mode = WGPUCallbackMode_WaitAnyOnly;
    callback.userdata1 = this;
    callback.callback = [](WGPUMapAsyncStatus status, WGPUStringView message, void* state, void*) {
      State& readback = *static_cast<State*>(state);
      readback.finished = true;
      if (status != WGPUMapAsyncStatus_Success) {
        readback.error = Error{ErrorCode::gpu_validation, from_webgpu(message)};
      }
    };
    mapping = device->library.map(staging.buffer.get(), staged_bytes(), submission, callback);
  }

  bool ready() const {
    if (!finished) device->wait(*mapping, 0);
    return finished;
  }

  Result<void> check_ready() const {
    if (ready()) return {};
    return fail(ErrorCode::invalid_argument,
                "a readback of {} bytes is taken before it is ready; wait for it first",
                staged_bytes());
  }

  Result<const std::byte*> mapped() const {
    TRY(device->errors.take());
    if (error) return tl::unexpected<Error>(*error);
    const void* range = wgpuBufferGetConstMappedRange(staging.buffer.get(), 0, staged_bytes());
    if (!range) return fail(ErrorCode::internal, "a readback is ready but not mapped");
    return static_cast<const std::byte*>(range);
  }
};

Readback::Readback() = default;
Readback::Readback(Readback&&) noexcept = default;
Readback& Readback::operator=(Readback&&) noexcept = default;
Readback::~Readback() = default;

bool Readback::ready() const { return !state_ || state_->ready(); }

Result<std::vector<DispatchTime>> Readback::times() const {
  if (!state_ || state_->timestamps.bytes() == 0) {
    return fail(ErrorCode::invalid_argument,
                "times of a submission that was not timed, or of which all is taken already");
  }
  TRY(state_->check_ready());
  TRY_ASSIGN(const std::byte* mapped, state_->mapped());
  const Device::State& device = *state_->device;
  return state_->timestamps.times(mapped, device.library.timestamp_ns(device.queue.get()));
}

Result<std::vector<std::byte>> Readback::take() {
  if (!state_) return std::vector<std::byte>();
  TRY(state_->check_ready());
  const std::shared_ptr<State> state = std::move(state_);
  TRY_ASSIGN(const std::byte* mapped, state->mapped());
  const std::byte* begin = mapped + state->timestamps.bytes();
  return std::vector<std::byte>(begin, begin + state->bytes);
}

Result<GpuBuffer> Device::State::take_staging(uint64_t bytes) {
  const auto fitting = std::find_if(staging.begin(), staging.end(),
                                    [&](const GpuBuffer& idle) { return idle.bytes >= bytes; });
  if (fitting == staging.end()) {
    return create_buffer(bytes, WGPUBufferUsage_MapRead | WGPUBufferUsage_CopyDst, "readback");
  }
  GpuBuffer buffer = std::move(*fitting);
  staging.erase(fitting);
  return buffer;
}

Result<std::shared_ptr<Readback::State>> Device::State::copy_out(WGPUCommandEncoder encoder,
                                                                 const View& source,
                                                                 Timestamps timestamps) {
  WGPUBuffer buffer = nullptr;
  if (source) {
    TRY_ASSIGN(buffer, buffer_of(source));
    TRY(check_read_back(source));
  }
  const uint64_t bytes = source ? source.bytes : 0;
  const uint64_t first_byte = timestamps.bytes();
  TRY_ASSIGN(GpuBuffer target, take_staging(first_byte + bytes));
  timestamps.resolve(encoder, target.buffer.get());
  if (source) {
    wgpuCommandEncoderCopyBufferToBuffer(encoder, buffer, source.offset, target.buffer.get(),
                                         first_byte, bytes);
  }
  return std::make_shared<Readback::State>(this, std::move(timestamps), bytes, std::move(target));
}

Result<BindGroup> Device::State::bind(Kernel kernel, std::span<const Binding> bindings) {
  std::vector<WGPUBindGroupEntry> entries;
  for (const auto& [view, access] : bindings) {
    TRY_ASSIGN(const WGPUBuffer buffer, buffer_of(view));
    WGPUBindGroupEntry entry = WGPU_BIND_GROUP_ENTRY_INIT;
    entry.binding = static_cast<uint32_t>(entries.size());
    entry.buffer = buffer;
    entry.offset = view.offset;
    entry.size = view.bytes;
    entries.push_back(entry);
  }
  WGPUBindGroupDescriptor descriptor = WGPU_BIND_GROUP_DESCRIPTOR_INIT;
  descriptor.layout = kernels[kernel].layout.get();
  descriptor.entryCount = entries.size();
  descriptor.entries = entries.data();
  BindGroup group(wgpuDeviceCreateBindGroup(device.get(), &descriptor));
  TRY(errors.take());
  return group;
}

namespace {

void encode(WGPUCommandEncoder encoder, std::span<const SizedDispatch> dispatches, Passes passes,
            const Timestamps& timestamps) {
  PassOwner pass;
  for (const SizedDispatch& sized : dispatches) {
    WGPUComputePassDescriptor descriptor = WGPU_COMPUTE_PASS_DESCRIPTOR_INIT;
    WGPUPassTimestampWrites writes;
    if (passes == Passes::timed) {
      writes = timestamps.writes(static_cast<size_t>(&sized - dispatches.data()));
      descriptor.timestampWrites = &writes;
    }
    if (!pass) pass.reset(wgpuCommandEncoderBeginComputePass(encoder, &descriptor));
    wgpuComputePassEncoderSetPipeline(pass.get(), sized.kernel->pipeline.get());
    wgpuComputePassEncoderSetBindGroup(pass.get(), 0, sized.dispatch->bind_group.get(), 0, nullptr);
    wgpuComputePassEncoderDispatchWorkgroups(pass.get(), sized.workgroups.x, sized.workgroups.y, 1);
    if (passes != Passes::one_per_submission || &sized == &dispatches.back()) {
      wgpuComputePassEncoderEnd(pass.get());
      pass.reset();
    }
  }
}

}  // namespace

Result<Readback> Device::submit(const Submission& submission) {
  State& state = *state_;
  TRY(finish_kernels());
  TRY_ASSIGN(const std::vector<SizedDispatch> dispatches,
             state.sized_dispatches(*this, submission));
  const bool timed = submission.passes == Passes::timed;
  Timestamps timestamps;
  if (timed) {
    TRY_ASSIGN(timestamps, state.make_timestamps(untimed(dispatches)));
  }

  const EncoderOwner encoder(wgpuDeviceCreateCommandEncoder(state.device.get(), nullptr));
  encode(encoder.get(), dispatches, submission.passes, timestamps);
  Readback readback;
  if (submission.read_back || timed) {
    TRY_ASSIGN(readback.state_,
               state.copy_out(encoder.get(), submission.read_back, std::move(timestamps)));
  }
  const CommandBufferOwner commands(wgpuCommandEncoderFinish(encoder.get(), nullptr));
  TRY(state.errors.take());
  const uint64_t number = state.library.submit(state.queue.get(), commands.get());
  if (readback.state_) readback.state_->map(number);
  TRY(state.errors.take());
  return readback;
}

Result<void> Device::wait(const Readback& readback) {
  if (readback.state_ && !readback.state_->finished) state_->wait(*readback.state_->mapping);
  return state_->errors.take();
}

}  // namespace tandem::gpu
