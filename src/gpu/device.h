// The narrow device: buffers, kernels, submissions and readbacks. Nothing here knows of models, and
// nothing but the implementation (native_*.cpp) knows which WebGPU library it is.
//
// Work is submitted and harvested, never waited for inside; only `wait` waits. Errors of the driver
// are stored when they arrive and returned by the next call. A lost device returns
// ErrorCode::device_lost from every call. A device and all that is made from it belong to one
// thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/dispatch.h"
#include "gpu/wgsl.h"
#include "tandem/error.h"

namespace tandem::gpu {

struct Limits {
  uint64_t max_buffer_bytes = 0;
  uint64_t max_binding_bytes = 0;    // of one storage binding
  uint32_t binding_alignment = 256;  // of a binding's offset
  uint32_t max_workgroup_bytes = 0;
  uint32_t max_workgroup_invocations = 0;
  uint32_t max_workgroups_per_dimension = 0;
  uint32_t max_storage_buffers = 0;  // of one kernel
};

struct AdapterInfo {
  std::string name;
  std::string vendor;
  std::string driver;
  std::string backend;  // "Vulkan", ...
  std::string library;  // the WebGPU library
  bool software = false;
  bool timestamps = false;  // whether submissions can be timed
  Limits limits;
  Tiers tiers;
};

struct DeviceOptions {
  // A part of an adapter's name, in any case, or "software"; empty takes the fastest. A software
  // adapter is taken only if it is asked for or is the only one.
  std::string adapter;
  Tiers disabled;                // tiers to force off
  std::optional<Limits> limits;  // lower limits than the adapter's own
  // Off, kernels run faster and an index out of bounds is undefined behaviour; a library that
  // cannot switch the checks leaves them on.
  bool bounds_checks = true;
  bool timestamps = true;  // asked for where the adapter has them
};

std::vector<std::string_view> tier_names(const Tiers& tiers);  // "base", "subgroups", ...

Result<std::vector<AdapterInfo>> adapters();

// The adapter that Device::open takes for DeviceOptions::adapter.
Result<AdapterInfo> adapter(std::string_view wanted);

// A range of a buffer.
struct View {
  uint32_t buffer = 0;  // the buffer's number; 0 is none
  uint64_t offset = 0;
  uint64_t bytes = 0;

  // The range [offset, offset + bytes) of this view.
  View part(uint64_t part_offset, uint64_t part_bytes) const {
    return {buffer, offset + part_offset, part_bytes};
  }
  explicit operator bool() const { return buffer != 0; }
};

// Binds a view and says what the kernel does with it, for instance `read(x)`.
struct Binding {
  View view;
  Access access;
};
inline Binding uniform(View view) { return {view, Access::uniform}; }
inline Binding read(View view) { return {view, Access::read}; }
inline Binding read_write(View view) { return {view, Access::read_write}; }

// The value of a WGSL override constant.
struct Constant {
  std::string_view name;
  double value;
};

using Kernel = uint32_t;  // a number of a compiled kernel

// What the recorder of a dispatch tells people about it.
struct Note {
  std::string
      label;  // "linear_row q4_0 6144x1536"; by default the kernel and its constants, sorted
  std::optional<Traffic> traffic;  // where it is known
};

// What one recorded dispatch runs, for people and for the census.
struct DispatchInfo {
  std::string_view kernel;  // as its note says; lives as long as the device
  Grid grid;
  // The bytes bound for reading and for writing: an upper bound of what is moved.
  uint64_t bytes_read = 0;
  uint64_t bytes_written = 0;
  std::optional<Traffic> traffic;
};

class Device;

// Owns GPU memory and frees it when it goes. The device must outlive it. Zero-filled when made.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Buffer&&) noexcept;
  Buffer& operator=(Buffer&&) noexcept;
  ~Buffer();

  View view() const { return {id_, 0, bytes_}; }
  uint64_t bytes() const { return bytes_; }

 private:
  friend class Device;
  Buffer(Device* device, uint32_t id, uint64_t bytes) : device_(device), id_(id), bytes_(bytes) {}
  Device* device_ = nullptr;
  uint32_t id_ = 0;
  uint64_t bytes_ = 0;
};

// Dispatches recorded once and replayed by Device::submit. Owns their bind groups. The device must
// outlive it.
class CommandList {
 public:
  explicit CommandList(Device& device);
  CommandList(CommandList&&) noexcept;
  CommandList& operator=(CommandList&&) noexcept;
  ~CommandList();

  // Binds `bindings` to @group(0) in order of @binding. Refuses: another number or access than the
  // kernel declares, offsets that break the alignment, ranges outside their buffer, sizes over the
  // limits, a range that is bound read_write while it overlaps another binding of the same
  // dispatch, and a buffer that is bound read_write and otherwise in the same dispatch, even in
  // disjoint ranges (WebGPU's rule: what a kernel reads and what it writes are separate buffers).
  Result<void> dispatch(Kernel kernel, std::span<const Binding> bindings, Grid grid,
                        const Note& note = {});
  Result<void> dispatch(Kernel kernel, std::initializer_list<Binding> bindings, Grid grid,
                        const Note& note = {}) {
    return dispatch(kernel, std::span(bindings.begin(), bindings.size()), grid, note);
  }

  Device& device() const;
  uint32_t dispatch_count() const;
  std::vector<DispatchInfo> dispatches() const;

 private:
  friend class Device;
  struct State;
  std::unique_ptr<State> state_;
};

// How dispatches share compute passes. `timed` is one per dispatch, each between two timestamps;
// it needs AdapterInfo::timestamps.
enum class Passes { one_per_submission, one_per_dispatch, timed };

// Command lists to run in order, each with its extent, and an optional range to read back
// afterwards.
struct Submission {
  struct Item {
    const CommandList* commands;
    Extent extent;
  };
  std::vector<Item> items;
  View read_back;
  Passes passes = Passes::one_per_submission;
};

// When a dispatch ran, in nanoseconds of the GPU's own clock.
struct DispatchTime {
  DispatchInfo dispatch;
  Extent extent;
  uint64_t begin_ns = 0;
  uint64_t end_ns = 0;
};

// Bytes, and times, on their way from the GPU; none, and ready at once, for a submission that is
// not timed and reads nothing back. The device must outlive it.
class Readback {
 public:
  Readback();
  Readback(Readback&&) noexcept;
  Readback& operator=(Readback&&) noexcept;
  ~Readback();
  bool ready() const;
  // Of a timed submission, once ready and before `take`: one for each dispatch, in order. The
  // queries and their results belong to this submission alone, whatever else is in flight.
  Result<std::vector<DispatchTime>> times() const;
  // The bytes, once ready; the error if the submission failed.
  Result<std::vector<std::byte>> take();

 private:
  friend class Device;
  struct State;
  std::shared_ptr<State> state_;
};

struct Census {
  uint64_t buffers = 0;
  uint64_t buffer_bytes = 0;
  uint64_t kernels = 0;
  double compile_ms = 0;  // spent in kernel() and finish_kernels()
};

class Device {
 public:
  static Result<std::unique_ptr<Device>> open(const DeviceOptions& options);
  // Only in the browser, where `open`, `wait` and `finish_kernels` of something unfinished are not:
  // the device that JavaScript has opened, of which it says `info`.
  static std::unique_ptr<Device> adopt(AdapterInfo info);
  ~Device();

  const AdapterInfo& info() const;  // timestamps, tiers and limits as granted

  Result<Buffer> make_buffer(uint64_t bytes, std::string_view label);
  // Queued before any later submission. Offset and size must be multiples of 4.
  Result<void> write(View view, std::span<const std::byte> bytes);

  // The kernel `name` of gpu/wgsl.h with the given constants, compiled in the background; the same
  // request gives the same number. Errors of its WGSL come from finish_kernels or the first
  // submission.
  Result<Kernel> kernel(std::string_view name, std::span<const Constant> constants);
  Result<Kernel> kernel(std::string_view name, std::initializer_list<Constant> constants) {
    return kernel(name, std::span(constants.begin(), constants.size()));
  }
  // The same for a source that is not embedded (tests and tools), with the bindings it declares.
  Result<Kernel> kernel_from_source(std::string_view label, std::string_view source,
                                    std::span<const Access> bindings,
                                    std::span<const Constant> constants = {});
  // How many kernels, and in the browser also buffers, are still being made; their errors, once
  // none is.
  Result<uint32_t> unfinished();
  // Waits until none is.
  Result<void> finish_kernels();

  Result<Readback> submit(const Submission& submission);
  // Waits until the readback is ready.
  Result<void> wait(const Readback& readback);
  // Reads a range now: submits, waits, and takes.
  Result<std::vector<std::byte>> read(View view);

  Census census() const;

  // Destroys the device as a lost one would be (tests).
  void lose();

 private:
  friend class Buffer;
  friend class CommandList;
  friend class Readback;
  struct State;
  explicit Device(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace tandem::gpu
