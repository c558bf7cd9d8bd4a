// The GPU device that tests run on: the adapter that TANDEM_ADAPTER names, by default the software
// one. Without such an adapter a test fails, it is not skipped.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "gpu/device.h"

namespace tandem::test {

// TANDEM_ADAPTER, or "software".
std::string adapter_name();

// One for the whole process.
gpu::Device& test_device();

// A device of its own; the adapter defaults to adapter_name().
std::unique_ptr<gpu::Device> open_device(gpu::DeviceOptions options = {});

// The value, or the end of the test program with the error's message.
template <class T>
T expect_value(Result<T> result);
void expect_success(const Result<void>& result);

gpu::Buffer upload(std::span<const std::byte> bytes, gpu::Device& device = test_device());
template <class T>
gpu::Buffer upload(std::span<const T> values, gpu::Device& device = test_device()) {
  return upload(std::as_bytes(values), device);
}
template <class T>
gpu::Buffer upload(const std::vector<T>& values, gpu::Device& device = test_device()) {
  return upload(std::as_bytes(std::span(values)), device);
}

// A buffer of NaNs with a telling pattern: what a kernel fails to write shows.
constexpr uint32_t poison_bits = 0x7fc0dead;
gpu::Buffer poisoned(uint64_t bytes, gpu::Device& device = test_device());

std::vector<std::byte> download_bytes(gpu::View view, gpu::Device& device = test_device());
template <class T>
std::vector<T> download_as(gpu::View view, gpu::Device& device = test_device());
std::vector<float> download(gpu::View view, gpu::Device& device = test_device());

// Submits the list once; a download waits for it.
void run(const gpu::CommandList& commands, gpu::Extent extent = {});

// Ends the test program with a message.
[[noreturn]] void give_up(const std::string& message);

template <class T>
T expect_value(Result<T> result) {
  if (!result) give_up(result.error().message);
  return std::move(*result);
}

template <class T>
std::vector<T> download_as(gpu::View view, gpu::Device& device) {
  const std::vector<std::byte> bytes = download_bytes(view, device);
  std::vector<T> values(bytes.size() / sizeof(T));
  std::copy_n(bytes.data(), values.size() * sizeof(T), reinterpret_cast<std::byte*>(values.data()));
  return values;
}

}  // namespace tandem::test
