// Adapters and devices: choice, tiers, limits, buffers, writes, and loss.
#include "gpu/device.h"

#include <gtest/gtest.h>

#include <numeric>

#include "gpu/probe.h"

namespace tandem::gpu {
namespace {

using test::download_as;
using test::expect_value;
using test::open_device;
using test::test_device;
using test::upload;

TEST(Adapters, AreListedWithTheirLimits) {
  const std::vector<AdapterInfo> all = expect_value(adapters());
  ASSERT_FALSE(all.empty());
  for (const AdapterInfo& info : all) {
    EXPECT_FALSE(info.name.empty());
    EXPECT_FALSE(info.backend.empty());
    EXPECT_FALSE(info.library.empty());
    // What every WebGPU adapter has.
    EXPECT_GE(info.limits.max_buffer_bytes, uint64_t{256} << 20);
    EXPECT_GE(info.limits.max_binding_bytes, uint64_t{128} << 20);
    EXPECT_LE(info.limits.binding_alignment, 256u);
    EXPECT_GE(info.limits.max_workgroup_bytes, 16384u);
    EXPECT_GE(info.limits.max_workgroup_invocations, 256u);
    EXPECT_GE(info.limits.max_workgroups_per_dimension, 65535u);
    EXPECT_GE(info.limits.max_storage_buffers, 8u);
  }
}

TEST(Adapters, AreChosenByAPartOfTheirNameInAnyCase) {
  const std::string name = test_device().info().name;
  std::string part = name.substr(0, name.find(' '));
  std::transform(part.begin(), part.end(), part.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  EXPECT_EQ(open_device({.adapter = part})->info().name, name);
  EXPECT_TRUE(refused(Device::open({.adapter = "no such adapter"}), ErrorCode::no_adapter,
                      {"no such adapter", name}));
}

TEST(Adapters, SoftwareIsTakenOnlyIfAskedForOrAlone) {
  const std::vector<AdapterInfo> all = expect_value(adapters());
  const bool only_software =
      std::all_of(all.begin(), all.end(), [](const AdapterInfo& info) { return info.software; });
  EXPECT_EQ(expect_value(Device::open({}))->info().software, only_software);
  for (const AdapterInfo& info : all) {
    if (!info.software) continue;
    EXPECT_TRUE(open_device({.adapter = "software"})->info().software);
  }
}

TEST(Device, ForcesTiersOff) {
  const Tiers all = test_device().info().tiers;
  EXPECT_EQ(open_device({.disabled = {.subgroups = true}})->info().tiers,
            (Tiers{.subgroups = false, .dp4a = all.dp4a, .f16 = all.f16}));
  const std::unique_ptr<Device> base =
      open_device({.disabled = {.subgroups = true, .dp4a = true, .f16 = true}});
  EXPECT_EQ(base->info().tiers, Tiers{});
  EXPECT_EQ(tier_names(base->info().tiers), std::vector<std::string_view>{"base"});
  EXPECT_EQ(tier_names({.subgroups = true, .dp4a = true, .f16 = true}),
            (std::vector<std::string_view>{"base", "subgroups", "dp4a", "f16"}));

  // The device itself lacks the feature, too.
  constexpr std::string_view source = R"(
enable subgroups;
@group(0) @binding(0) var<storage, read_write> y: u32;
@compute @workgroup_size(1) fn main() { y = subgroupMax(y); }
)";
  constexpr Access bindings[] = {Access::read_write};
  test::expect_value(base->kernel_from_source("needs_subgroups", source, bindings));
  EXPECT_TRUE(refused(base->finish_kernels(), ErrorCode::gpu_validation, {"subgroups"}));
}

TEST(Device, RefusesLimitsBeyondTheAdapter) {
  const Limits adapter = test_device().info().limits;
  const auto open = [&](auto change) {
    DeviceOptions options{.adapter = test::adapter_name(), .limits = adapter};
    change(*options.limits);
    return Device::open(options);
  };
  EXPECT_TRUE(accepted(open([](Limits&) {})));
  EXPECT_TRUE(refused(open([](Limits& limits) { ++limits.max_buffer_bytes; }),
                      ErrorCode::limit_exceeded,
                      {"max_buffer_bytes", std::to_string(adapter.max_buffer_bytes)}));
  EXPECT_TRUE(refused(open([](Limits& limits) { limits.max_binding_bytes = 0; }),
                      ErrorCode::limit_exceeded, {"max_binding_bytes = 0"}));
  EXPECT_TRUE(refused(open([](Limits& limits) { ++limits.max_workgroup_bytes; }),
                      ErrorCode::limit_exceeded, {"max_workgroup_bytes"}));
  EXPECT_TRUE(refused(open([](Limits& limits) { ++limits.max_workgroup_invocations; }),
                      ErrorCode::limit_exceeded, {"max_workgroup_invocations"}));
  EXPECT_TRUE(refused(open([](Limits& limits) { ++limits.max_workgroups_per_dimension; }),
                      ErrorCode::limit_exceeded, {"max_workgroups_per_dimension"}));
  EXPECT_TRUE(refused(open([](Limits& limits) { ++limits.max_storage_buffers; }),
                      ErrorCode::limit_exceeded, {"max_storage_buffers"}));
  EXPECT_TRUE(refused(open([](Limits& limits) { limits.binding_alignment /= 2; }),
                      ErrorCode::limit_exceeded, {"binding_alignment"}));
  EXPECT_TRUE(refused(open([](Limits& limits) { limits.binding_alignment = 768; }),
                      ErrorCode::limit_exceeded, {"power of two"}));
}

TEST(Device, KeepsToLowerLimits) {
  Limits limits = test_device().info().limits;
  limits.max_buffer_bytes = 65536;
  limits.max_binding_bytes = 4096;
  limits.binding_alignment = 1024;
  limits.max_workgroups_per_dimension = 7;
  limits.max_storage_buffers = 2;
  const std::unique_ptr<Device> device = open_device({.limits = limits});
  EXPECT_EQ(device->info().limits.max_buffer_bytes, 65536u);

  EXPECT_TRUE(refused(device->make_buffer(65540, "large"), ErrorCode::limit_exceeded,
                      {"large", "65540", "65536"}));
  const Buffer x = expect_value(device->make_buffer(65536, "x"));
  const Buffer y = expect_value(device->make_buffer(4096, "y"));
  const Kernel add = add_kernel(*device);
  CommandList commands(*device);
  const View all = x.view();
  EXPECT_TRUE(refused(commands.dispatch(add, {read(all), read_write(y.view())}, {}),
                      ErrorCode::limit_exceeded, {"binding 0", "65536", "4096"}));
  EXPECT_TRUE(refused(commands.dispatch(add, {read(all.part(256, 16)), read_write(y.view())}, {}),
                      ErrorCode::gpu_validation, {"offset 256", "1024"}));
  EXPECT_TRUE(accepted(
      commands.dispatch(add, {read(all.part(1024, 4096)), read_write(y.view())}, {.groups = 49})));
  test::run(commands);
  std::vector<uint32_t> expected(1024);
  std::fill_n(expected.begin(), 49, 1);
  EXPECT_EQ(download_as<uint32_t>(y.view(), *device), expected) << "49 workgroups as 7 x 7";

  CommandList too_many(*device);
  EXPECT_TRUE(accepted(
      too_many.dispatch(add, {read(all.part(0, 4096)), read_write(y.view())}, {.groups = 50})));
  EXPECT_TRUE(refused(device->submit({.items = {{&too_many, {}}}}), ErrorCode::limit_exceeded,
                      {"add", "50", "7 x 7"}));

  const std::vector<Access> three(3, Access::read);
  EXPECT_TRUE(refused(device->kernel_from_source("three", add_source, three),
                      ErrorCode::limit_exceeded, {"three", "3 storage buffers", "at most 2"}));
}

TEST(Device, MovesBytesThereAndBack) {
  Device& device = test_device();
  std::vector<uint32_t> values(100000);
  std::iota(values.begin(), values.end(), 7);
  const Buffer buffer = upload(values);
  EXPECT_EQ(buffer.bytes(), 400000u);
  EXPECT_EQ(download_as<uint32_t>(buffer.view()), values);

  const uint32_t patch[] = {1, 2, 3};
  EXPECT_TRUE(accepted(device.write(buffer.view().part(40, 400), std::as_bytes(std::span(patch)))));
  std::copy(std::begin(patch), std::end(patch), values.begin() + 10);
  EXPECT_EQ(download_as<uint32_t>(buffer.view()), values);
  EXPECT_EQ(download_as<uint32_t>(buffer.view().part(36, 8)), (std::vector<uint32_t>{16, 1}));
  EXPECT_TRUE(accepted(device.write(buffer.view(), {})));
}

TEST(Device, BuffersBeginAsZeros) {
  const Buffer buffer = expect_value(test_device().make_buffer(4096, "zeros"));
  EXPECT_EQ(download_as<uint32_t>(buffer.view()), std::vector<uint32_t>(1024, 0));
}

TEST(Device, RefusesBadWritesAndReads) {
  Device& device = test_device();
  const Buffer buffer = expect_value(device.make_buffer(64, "target"));
  const View view = buffer.view();
  const std::vector<std::byte> bytes(128);
  const auto write = [&](View to, size_t count) {
    return device.write(to, std::span(bytes).first(count));
  };
  EXPECT_TRUE(accepted(write(view.part(4, 60), 60)));
  EXPECT_TRUE(refused(write(view, 6), ErrorCode::gpu_validation, {"6 bytes", "multiples of 4"}));
  EXPECT_TRUE(refused(write(view.part(2, 60), 8), ErrorCode::gpu_validation, {"offset 2"}));
  EXPECT_TRUE(refused(write(view.part(0, 8), 12), ErrorCode::gpu_validation, {"12", "8 bytes"}));
  EXPECT_TRUE(refused(write(view.part(4, 64), 4), ErrorCode::gpu_validation,
                      {"target", "64 bytes at offset 4"}));
  EXPECT_TRUE(refused(write(view.part(UINT64_MAX - 3, 8), 4), ErrorCode::gpu_validation));
  EXPECT_TRUE(refused(write({}, 4), ErrorCode::gpu_validation, {"buffer 0"}));
  EXPECT_TRUE(accepted(device.read(view.part(60, 4))));
  EXPECT_TRUE(refused(device.read(view.part(60, 8)), ErrorCode::gpu_validation, {"target"}));
  EXPECT_TRUE(refused(device.read(view.part(1, 4)), ErrorCode::gpu_validation, {"offset 1"}));
  EXPECT_TRUE(refused(device.read(view.part(0, 0)), ErrorCode::gpu_validation, {"0 bytes"}));
}

TEST(Device, RefusesBadBuffers) {
  Device& device = test_device();
  const uint64_t most = device.info().limits.max_buffer_bytes;
  EXPECT_TRUE(accepted(device.make_buffer(4, "small")));
  EXPECT_TRUE(refused(device.make_buffer(0, "none"), ErrorCode::invalid_argument, {"none"}));
  EXPECT_TRUE(refused(device.make_buffer(6, "odd"), ErrorCode::invalid_argument, {"odd", "6"}));
  EXPECT_TRUE(refused(device.make_buffer(most + 4, "large"), ErrorCode::limit_exceeded,
                      {"large", std::to_string(most + 4), std::to_string(most)}));
  EXPECT_TRUE(refused(device.make_buffer(UINT64_MAX - 3, "huge"), ErrorCode::limit_exceeded));
}

TEST(Device, RunsOutOfMemoryAndGoesOn) {
  const std::unique_ptr<Device> device = open_device();
  const uint64_t most = device->info().limits.max_buffer_bytes;
  std::vector<Buffer> buffers;
  Result<Buffer> buffer = device->make_buffer(most, "hoard");
  while (buffer && buffers.size() < 4096) {
    buffers.push_back(std::move(*buffer));
    buffer = device->make_buffer(most, "hoard");
  }
  EXPECT_TRUE(refused(buffer, ErrorCode::out_of_memory, {"hoard", std::to_string(most)}));
  buffers.clear();
  EXPECT_TRUE(accepted(device->make_buffer(1 << 20, "modest")));
}

TEST(Device, CountsWhatLives) {
  const std::unique_ptr<Device> device = open_device();
  {
    Buffer first = expect_value(device->make_buffer(64, "first"));
    Buffer second = expect_value(device->make_buffer(128, "second"));
    EXPECT_EQ(device->census().buffers, 2u);
    EXPECT_EQ(device->census().buffer_bytes, 192u);
    second = std::move(first);
    EXPECT_EQ(device->census().buffers, 1u);
    EXPECT_EQ(device->census().buffer_bytes, 64u);
    EXPECT_FALSE(first.view());
    Buffer& same = second;
    second = std::move(same);
    EXPECT_EQ(second.bytes(), 64u);
    expect_value(device->read(second.view()));
  }
  EXPECT_EQ(device->census().buffers, 0u);
  EXPECT_EQ(device->census().buffer_bytes, 0u);
}

TEST(Device, LossIsOneErrorFromEveryCallAndANewDeviceWorks) {
  const std::unique_ptr<Device> device = open_device();
  const Buffer x = upload(std::vector<uint32_t>{1, 2}, *device);
  const Buffer y = expect_value(device->make_buffer(8, "y"));
  const Kernel add = add_kernel(*device);
  CommandList commands(*device);
  const std::initializer_list<Binding> bindings = {read(x.view()), read_write(y.view())};
  ASSERT_TRUE(accepted(commands.dispatch(add, bindings, {.groups = 2})));
  const Submission submission{.items = {{&commands, {}}}, .read_back = y.view()};
  Readback pending = expect_value(device->submit(submission));

  device->lose();
  EXPECT_TRUE(refused(device->make_buffer(4, "late"), ErrorCode::device_lost, {"open it again"}));
  EXPECT_TRUE(refused(device->write(x.view(), {}), ErrorCode::device_lost));
  EXPECT_TRUE(
      refused(device->kernel_from_source("add", add_source, add_bindings), ErrorCode::device_lost));
  EXPECT_TRUE(refused(device->finish_kernels(), ErrorCode::device_lost));
  EXPECT_TRUE(refused(commands.dispatch(add, bindings, {}), ErrorCode::device_lost));
  EXPECT_TRUE(refused(device->submit(submission), ErrorCode::device_lost));
  EXPECT_TRUE(refused(device->wait(pending), ErrorCode::device_lost));
  EXPECT_TRUE(refused(pending.take(), ErrorCode::device_lost));
  EXPECT_TRUE(refused(device->read(y.view()), ErrorCode::device_lost));

  const std::unique_ptr<Device> fresh = open_device();
  const Buffer again = upload(std::vector<uint32_t>{5}, *fresh);
  EXPECT_EQ(download_as<uint32_t>(again.view(), *fresh), std::vector<uint32_t>{5});
}

}  // namespace
}  // namespace tandem::gpu
