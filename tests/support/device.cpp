// Opens the tests' device and moves data to and from it.
#include "support/device.h"

#include <cstdio>
#include <cstdlib>

namespace tandem::test {

void give_up(const std::string& message) {
  std::fprintf(stderr, "%s\n", message.c_str());
  std::exit(EXIT_FAILURE);
}

void expect_success(const Result<void>& result) {
  if (!result) give_up(result.error().message);
}

std::string adapter_name() {
  const char* name = std::getenv("TANDEM_ADAPTER");
  return name && *name ? name : "software";
}

std::unique_ptr<gpu::Device> open_device(gpu::DeviceOptions options) {
  if (options.adapter.empty()) options.adapter = adapter_name();
  return expect_value(gpu::Device::open(options));
}

gpu::Device& test_device() {
  static const std::unique_ptr<gpu::Device> device = open_device();
  return *device;
}

gpu::Buffer upload(std::span<const std::byte> bytes, gpu::Device& device) {
  gpu::Buffer buffer = expect_value(device.make_buffer(bytes.size(), "test"));
  expect_success(device.write(buffer.view(), bytes));
  return buffer;
}

gpu::Buffer poisoned(uint64_t bytes, gpu::Device& device) {
  return upload(std::vector<uint32_t>(bytes / sizeof(uint32_t), poison_bits), device);
}

std::vector<std::byte> download_bytes(gpu::View view, gpu::Device& device) {
  return expect_value(device.read(view));
}

std::vector<float> download(gpu::View view, gpu::Device& device) {
  return download_as<float>(view, device);
}

void run(const gpu::CommandList& commands, gpu::Extent extent) {
  expect_success(
      commands.device().submit({.items = {{&commands, extent}}}).map([](const auto&) {}));
}

}  // namespace tandem::test
