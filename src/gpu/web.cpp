// The device of a browser: what web.js does on navigator.gpu. A submission is a list of words in
// linear memory that JavaScript replays in one call; what takes time there ends with an event that
// only stores its outcome here, or with bytes that JavaScript writes where a readback waits.
#include <emscripten/emscripten.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <functional>
#include <set>
#include <unordered_map>

#include "base/error.h"
#include "gpu/checks.h"
#include "gpu/device.h"
#include "gpu/driver_errors.h"

extern "C" {
// Implemented by web.js, which says what they do. Sizes and offsets are doubles, which hold them
// exactly; texts are UTF-8.
void tandem_gpu_make_buffer(uint32_t buffer, double bytes, const char* label, size_t label_bytes);
void tandem_gpu_free_buffer(uint32_t buffer);
void tandem_gpu_write(uint32_t buffer, double offset, const void* bytes, size_t count);
void tandem_gpu_compile(uint32_t kernel, const char* label, size_t label_bytes, const char* source,
                        size_t source_bytes, const uint8_t* accesses, size_t bindings,
                        const char* constants, size_t constants_bytes);
void tandem_gpu_bind(uint32_t group, uint32_t kernel, const double* entries, size_t bindings);
void tandem_gpu_unbind(const uint32_t* groups, size_t count);
void tandem_gpu_submit(const uint32_t* words);
void tandem_gpu_lose();
void tandem_gpu_close();
}

namespace tandem::gpu {
namespace {

// What an event is about; web.js has the same numbers.
enum class Event : uint32_t { buffer, kernel, error, loss };

struct WebBuffer {
  uint64_t bytes = 0;
  std::string label;
};

struct CompiledKernel {
  std::string name;
  std::string description;  // the name and its constants
  std::vector<Access> bindings;
  std::optional<Error> error;  // set when refused
};

struct Dispatch {
  Kernel kernel;
  uint32_t bind_group;
  DispatchInfo info;
};

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

struct Device::State {
  AdapterInfo info;
  DriverErrors errors;

  // Numbers are never given twice, so that a stale view is found out.
  std::unordered_map<uint32_t, WebBuffer> buffers;
  uint32_t last_buffer = 0;
  uint64_t freed_buffers = 0;
  uint64_t buffer_bytes = 0;

  std::deque<CompiledKernel> kernels;  // by number
  std::unordered_map<std::string, Kernel> kernel_numbers;
  uint32_t unfinished = 0;  // buffers and kernels

  uint32_t last_bind_group = 0;
  std::vector<uint32_t> words;  // of the submission under way
  // All that web.js may still write to.
  std::deque<std::shared_ptr<Readback::State>> in_flight;
  std::set<std::string, std::less<>> labels;

  Result<const WebBuffer*> buffer_of(const View& view) const {
    const auto found = buffers.find(view.buffer);
    if (found == buffers.end()) {
      return fail(ErrorCode::gpu_validation, "a view of buffer {}, which does not exist (any more)",
                  view.buffer);
    }
    TRY(check_inside(view, found->second.bytes, found->second.label));
    return &found->second;
  }

  void event(Event event, uint32_t number, std::optional<Error> error) {
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

  void append(const void* pointer) {
    words.push_back(static_cast<uint32_t>(reinterpret_cast<uintptr_t>(pointer)));
  }
  void append(uint64_t value) {
    words.push_back(static_cast<uint32_t>(value));
    words.push_back(static_cast<uint32_t>(value >> 32));
  }
};

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

struct CommandList::State {
  Device* device;
  std::vector<Dispatch> dispatches;
  std::vector<uint32_t> buffers;  // all that it binds, which must live when it is submitted
  uint64_t freed_buffers = 0;     // of the device when they were last known to live

  ~State() {
    std::vector<uint32_t> groups;
    for (const Dispatch& dispatch : dispatches) groups.push_back(dispatch.bind_group);
    if (!groups.empty()) tandem_gpu_unbind(groups.data(), groups.size());
  }

  Result<void> check_buffers(const Device::State& owner) {
    if (freed_buffers == owner.freed_buffers) return {};
    for (const uint32_t buffer : buffers) TRY(owner.buffer_of({.buffer = buffer}));
    freed_buffers = owner.freed_buffers;
    return {};
  }
};

CommandList::CommandList(Device& device) : state_(new State{.device = &device}) {}
CommandList::CommandList(CommandList&&) noexcept = default;
CommandList& CommandList::operator=(CommandList&&) noexcept = default;
CommandList::~CommandList() = default;

Device& CommandList::device() const { return *state_->device; }
uint32_t CommandList::dispatch_count() const {
  return static_cast<uint32_t>(state_->dispatches.size());
}

std::vector<DispatchInfo> CommandList::dispatches() const {
  std::vector<DispatchInfo> infos;
  for (const Dispatch& dispatch : state_->dispatches) infos.push_back(dispatch.info);
  return infos;
}

Result<void> CommandList::dispatch(Kernel number, std::span<const Binding> bindings, Grid grid,
                                   const Note& note) {
  Device::State& device = *state_->device->state_;
  TRY(device.errors.take());
  if (number >= device.kernels.size()) {
    return fail(ErrorCode::gpu_validation, "kernel number {}, expected below {}", number,
                device.kernels.size());
  }
  const CompiledKernel& kernel = device.kernels[number];
  std::vector<double> entries;
  for (size_t i = 0; i < bindings.size(); ++i) {
    const View& view = bindings[i].view;
    if (const auto buffer = device.buffer_of(view); !buffer) {
      return fail(buffer.error().code, "kernel {}, binding {}: {}", kernel.name, i,
                  buffer.error().message);
    }
    entries.insert(entries.end(), {double(view.buffer), static_cast<double>(view.offset),
                                   static_cast<double>(view.bytes)});
    state_->buffers.push_back(view.buffer);
  }
  TRY(check_bindings(kernel.name, kernel.bindings, bindings, device.info.limits));
  const uint32_t group = ++device.last_bind_group;
  tandem_gpu_bind(group, number, entries.data(), bindings.size());
  const std::string& label = note.label.empty() ? kernel.description : note.label;
  state_->dispatches.push_back(
      {number, group, info_of(*device.labels.insert(label).first, grid, bindings, note.traffic)});
  return {};
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
  std::vector<uint32_t>& words = state.words;
  words.assign({static_cast<uint32_t>(submission.passes), 0});
  std::vector<DispatchTime> times;
  for (const Submission::Item& item : submission.items) {
    if (!item.commands || &item.commands->device() != this) {
      return fail(ErrorCode::gpu_validation,
                  "a submission without a command list, or with one of another device");
    }
    TRY(item.commands->state_->check_buffers(state));
    for (const Dispatch& dispatch : item.commands->state_->dispatches) {
      const CompiledKernel& kernel = state.kernels[dispatch.kernel];
      if (kernel.error) return tl::unexpected<Error>(*kernel.error);
      TRY_ASSIGN(const Workgroups workgroups,
                 sized(kernel.name, dispatch.info.grid, item.extent, state.info.limits));
      words.insert(words.end(), {dispatch.kernel, dispatch.bind_group, workgroups.x, workgroups.y});
      ++words[1];
      if (timed) times.push_back({dispatch.info, item.extent});
    }
  }
  const View& source = submission.read_back;
  if (source) {
    TRY(state.buffer_of(source));
    TRY(check_read_back(source));
  }
  const auto done = [](const auto& readback) { return readback->outcome != under_way; };
  std::erase_if(state.in_flight, done);
  Readback readback;
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
