// The device of a browser: what web.js does on navigator.gpu. A submission is a list of words in
// linear memory that JavaScript replays in one call; what takes time there ends with an event that
// only stores its outcome here, or with bytes that JavaScript writes where a readback waits.
#include "gpu/web.h"

#include <emscripten/emscripten.h>

#include <algorithm>
#include <cstring>
#include <functional>

#include "base/error.h"
#include "gpu/checks.h"
#include "gpu/command_list.h"

namespace tandem::gpu {
namespace {

// What web.js reports in an event, by its number there; none is no error.
constexpr ErrorCode event_codes[] = {ErrorCode::out_of_memory, ErrorCode::gpu_validation,
                                     ErrorCode::internal};

// A module has one open device, which events are for.
std::function<void(Event, uint32_t number, std::optional<Error>)> on_event;

// One word of a readback: web.js sets it.
enum Outcome : uint32_t { under_way, copied, failed };

constexpr uint64_t timestamp_bytes = 2 * sizeof(uint64_t);  // of one dispatch

// {"NAME": value, ...} of numbers that JSON writes exactly.
std::string constants_json(std::span<const Constant> constants) {
  std::string json = "{";
  for (const Constant& constant : constants) {
    json +=
        fmt::format("{}\"{}\":{:.17g}", json.size() > 1 ? "," : "", constant.name, constant.value);
  }
  return json + "}";
}

}  // namespace

Result<const WebBuffer*> Device::State::buffer_of(const View& view) const {
  const auto found = buffers.find(view.buffer);
  if (found == buffers.end()) {
    return fail(ErrorCode::gpu_validation, "a view of buffer {}, which does not exist (any more)",
                view.buffer);
  }
  TRY(check_inside(view, found->second.bytes, found->second.label));
  return &found->second;
}

void Device::State::event(Event event, uint32_t number, std::optional<Error> error) {
  switch (event) {
    case Event::buffer:
      --unfinished;
      if (const auto found = buffers.find(number); error && found != buffers.end()) {
        error->message = fmt::format("buffer {} of {} bytes: {}", found->second.label,
                                     found->second.bytes, error->message);
      }
      break;
    case Event::kernel:
      --unfinished;
      if (!error) return;
      error->message = fmt::format("kernel {}: {}", kernels[number].name, error->message);
      kernels[number].error = error;
      break;
    case Event::error:
      break;
    case Event::loss:
      return errors.lose(error ? error->message : "no reason given");
  }
  if (error) errors.store(*std::move(error));
}

Result<BindGroup> Device::State::bind(Kernel kernel, std::span<const Binding> bindings) {
  std::vector<double> entries;
  for (const auto& [view, access] : bindings) {
    entries.insert(entries.end(), {double(view.buffer), static_cast<double>(view.offset),
                                   static_cast<double>(view.bytes)});
  }
  BindGroup group(++last_bind_group);
  tandem_gpu_bind(group.number(), kernel, entries.data(), bindings.size());
  return group;
}

struct Readback::State {
  Device::State* device;
  std::vector<DispatchTime> timed;
  std::vector<std::byte> bytes;  // the timestamps, then what is read back
  uint32_t outcome = under_way;

  bool ready() const { return outcome != under_way || device->errors.lost(); }
  Result<void> check() const {
    if (!ready()) {
      return fail(ErrorCode::invalid_argument,
                  "a readback of {} bytes is taken before it is ready; wait for it first",
                  bytes.size());
    }
    TRY(device->errors.take());
    if (outcome == copied) return {};
    return fail(ErrorCode::gpu_validation, "a readback of {} bytes failed", bytes.size());
  }
};

Readback::Readback() = default;
Readback::Readback(Readback&&) noexcept = default;
Readback& Readback::operator=(Readback&&) noexcept = default;
Readback::~Readback() = default;

bool Readback::ready() const { return !state_ || state_->ready(); }

Result<std::vector<DispatchTime>> Readback::times() const {
  if (!state_ || state_->timed.empty()) {
    return fail(ErrorCode::invalid_argument,
                "times of a submission that was not timed, or of which all is taken already");
  }
  TRY(state_->check());
  std::vector<DispatchTime> times = state_->timed;
  const std::byte* stamps = state_->bytes.data();
  for (DispatchTime& time : times) {
    std::memcpy(&time.begin_ns, stamps, sizeof(time.begin_ns));
    std::memcpy(&time.end_ns, stamps + sizeof(time.begin_ns), sizeof(time.end_ns));
    stamps += timestamp_bytes;
  }
  return times;
}

Result<std::vector<std::byte>> Readback::take() {
  if (!state_) return std::vector<std::byte>();
  TRY(state_->check());
  const std::shared_ptr<State> state = std::move(state_);
  const auto first =
      state->bytes.begin() + static_cast<ptrdiff_t>(state->timed.size() * timestamp_bytes);
  return std::vector<std::byte>(first, state->bytes.end());
}

std::unique_ptr<Device> Device::adopt(AdapterInfo info) {
  std::unique_ptr<Device> device(new Device(std::make_unique<State>()));
  State& state = *device->state_;
  state.info = std::move(info);
  on_event = [&state](Event event, uint32_t number, std::optional<Error> error) {
    state.event(event, number, std::move(error));
  };
  return device;
}

Device::Device(std::unique_ptr<State> state) : state_(std::move(state)) {}

Device::~Device() {
  tandem_gpu_close();
  on_event = nullptr;
}

const AdapterInfo& Device::info() const { return state_->info; }

Result<Buffer> Device::make_buffer(uint64_t bytes, std::string_view label) {
  TRY(state_->errors.take());
  TRY(check_new_buffer(bytes, label, state_->info.limits));
  const uint32_t id = ++state_->last_buffer;
  state_->buffers.emplace(id, WebBuffer{bytes, std::string(label)});
  state_->buffer_bytes += bytes;
  ++state_->unfinished;
  tandem_gpu_make_buffer(id, static_cast<double>(bytes), label.data(), label.size());
  return Buffer(this, id, bytes);
}

Buffer::~Buffer() {
  if (!device_) return;
  Device::State& state = *device_->state_;
  tandem_gpu_free_buffer(id_);
  state.buffers.erase(id_);
  state.buffer_bytes -= bytes_;
  ++state.freed_buffers;
}

Result<void> Device::write(View view, std::span<const std::byte> bytes) {
  TRY(state_->errors.take());
  TRY(state_->buffer_of(view));
  TRY(check_write(view, bytes.size()));
  tandem_gpu_write(view.buffer, static_cast<double>(view.offset), bytes.data(), bytes.size());
  return {};
}

Result<Kernel> Device::kernel_from_source(std::string_view label, std::string_view source,
                                          std::span<const Access> bindings,
                                          std::span<const Constant> constants) {
  State& state = *state_;
  TRY(state.errors.take());
  TRY(check_storage_buffers(label, bindings, state.info.limits));
  const Kernel number = static_cast<Kernel>(state.kernels.size());
  std::string description = describe(label, constants);
  const auto [request, is_new] =
      state.kernel_numbers.emplace(fmt::format("{}\n{}", description, source), number);
  if (!is_new) return request->second;
  CompiledKernel& kernel = state.kernels.emplace_back();
  kernel.name = label;
  kernel.description = std::move(description);
  kernel.bindings.assign(bindings.begin(), bindings.end());
  const std::string text = source_for(source, state.info.tiers);
  const std::string values = constants_json(constants);
  ++state.unfinished;
  tandem_gpu_compile(number, kernel.name.data(), kernel.name.size(), text.data(), text.size(),
                     reinterpret_cast<const uint8_t*>(kernel.bindings.data()), bindings.size(),
                     values.data(), values.size());
  return number;
}

Result<uint32_t> Device::unfinished() {
  if (state_->unfinished > 0 && !state_->errors.lost()) return state_->unfinished;
  TRY(state_->errors.take());
  return 0u;
}

Result<void> Device::finish_kernels() {
  TRY_ASSIGN(const uint32_t unfinished, this->unfinished());
  if (unfinished == 0) return {};
  return fail(ErrorCode::internal, "a wait for {} buffers and kernels; a browser never waits",
              unfinished);
}

Result<Readback> Device::submit(const Submission& submission) {
  State& state = *state_;
  TRY(state.errors.take());
  const bool timed = submission.passes == Passes::timed;
  if (timed && !state.info.timestamps) {
    return fail(ErrorCode::unsupported,
                "a timed submission on \"{}\", which has no timestamps or was opened without them",
                state.info.name);
  }
  TRY_ASSIGN(const std::vector<SizedDispatch> dispatches,
             state.sized_dispatches(*this, submission));
  std::vector<uint32_t>& words = state.words;
  words.assign(
      {static_cast<uint32_t>(submission.passes), static_cast<uint32_t>(dispatches.size())});
  for (const auto& [dispatch, kernel, extent, workgroups] : dispatches) {
    words.insert(words.end(),
                 {dispatch->kernel, dispatch->bind_group.number(), workgroups.x, workgroups.y});
  }
  const View& source = submission.read_back;
  if (source) {
    TRY(state.buffer_of(source));
    TRY(check_read_back(source));
  }
  const auto done = [](const auto& readback) { return readback->outcome != under_way; };
  std::erase_if(state.in_flight, done);
  Readback readback;
  std::vector<DispatchTime> times = timed ? untimed(dispatches) : std::vector<DispatchTime>();
  const uint64_t bytes = (source ? source.bytes : 0) + times.size() * timestamp_bytes;
  words.push_back(source.buffer);
  state.append(source.offset);
  words.push_back(static_cast<uint32_t>(bytes));
  if (bytes > 0) {
    readback.state_ = std::make_shared<Readback::State>(
        Readback::State{&state, std::move(times), std::vector<std::byte>(bytes)});
    state.in_flight.push_back(readback.state_);
    state.append(static_cast<const void*>(readback.state_->bytes.data()));
    state.append(static_cast<const void*>(&readback.state_->outcome));
  }
  tandem_gpu_submit(words.data());
  return readback;
}

Result<void> Device::wait(const Readback& readback) {
  TRY(state_->errors.take());
  if (readback.ready()) return {};
  return fail(ErrorCode::internal, "a wait for the GPU; a browser never waits");
}

Census Device::census() const {
  return {.buffers = state_->buffers.size(),
          .buffer_bytes = state_->buffer_bytes,
          .kernels = state_->kernels.size()};
}

void Device::lose() { tandem_gpu_lose(); }

}  // namespace tandem::gpu

// The event `kind` about a buffer or kernel: an error, unless `code` is negative.
extern "C" EMSCRIPTEN_KEEPALIVE void tandem_gpu_event(uint32_t kind, uint32_t number, int32_t code,
                                                      const char* text, size_t bytes) {
  using namespace tandem;
  std::optional<Error> error;
  if (code >= 0) error = Error{gpu::event_codes[code], std::string(text, bytes)};
  if (gpu::on_event) gpu::on_event(static_cast<gpu::Event>(kind), number, std::move(error));
}
