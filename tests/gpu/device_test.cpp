// The device: buffers, kernels, submissions and readbacks.
#include "support/device.h"

#include <gtest/gtest.h>

#include "support/compare.h"

namespace tandem::gpu {
namespace {

using test::download_as;
using test::expect_success;
using test::expect_value;
using test::test_device;
using test::upload;

constexpr std::string_view add_source = R"(
override ADDEND: u32 = 1;
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
@compute @workgroup_size(1) fn main(@builtin(workgroup_id) id: vec3<u32>,
                                    @builtin(num_workgroups) count: vec3<u32>) {
  let i = id.x + id.y * count.x;
  if (i < arrayLength(&y)) { y[i] = x[i] + ADDEND; }
}
)";
constexpr Access add_bindings[] = {Access::read, Access::read_write};

TEST(Device, RunsAKernel) {
  Device& device = test_device();

  const Kernel kernel = expect_value(device.kernel_from_source("add", add_source, add_bindings));
  const Buffer x = upload(std::vector<uint32_t>{1, 2, 3});
  const Buffer y = test::poisoned(12);
  CommandList commands(device);
  expect_success(commands.dispatch(kernel, {read(x.view()), read_write(y.view())}, {.groups = 3}));
  test::run(commands);
  EXPECT_EQ(download_as<uint32_t>(y.view()), (std::vector<uint32_t>{2, 3, 4}));
}

}  // namespace
}  // namespace tandem::gpu
