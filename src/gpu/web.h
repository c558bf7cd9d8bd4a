// Private to web.cpp and command_list.cpp: the device of a browser, and what web.js does for it.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

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
void tandem_gpu_unbind(uint32_t group);
void tandem_gpu_submit(const uint32_t* words);
void tandem_gpu_lose();
void tandem_gpu_close();
}

namespace tandem::gpu {

struct SizedDispatch;

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

// Owns a bind group of web.js.
class BindGroup {
 public:
  explicit BindGroup(uint32_t number) : number_(number) {}
  BindGroup(BindGroup&& other) noexcept : number_(std::exchange(other.number_, 0)) {}
  BindGroup& operator=(BindGroup&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~BindGroup() {
    if (number_ != 0) tandem_gpu_unbind(number_);
  }
  uint32_t number() const { return number_; }

 private:
  uint32_t number_;
};

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

  Result<const WebBuffer*> buffer_of(const View& view) const;
  // Makes a bind group of bindings that are checked.
  Result<BindGroup> bind(Kernel kernel, std::span<const Binding> bindings);
  // What a submission dispatches; refuses what cannot be.
  Result<std::vector<SizedDispatch>> sized_dispatches(const Device& of,
                                                      const Submission& submission) const;
  void event(Event event, uint32_t number, std::optional<Error> error);
  void append(const void* pointer) {
    words.push_back(static_cast<uint32_t>(reinterpret_cast<uintptr_t>(pointer)));
  }
  void append(uint64_t value) {
    words.push_back(static_cast<uint32_t>(value));
    words.push_back(static_cast<uint32_t>(value >> 32));
  }
};

}  // namespace tandem::gpu
