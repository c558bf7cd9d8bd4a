// Command lists, submissions and readbacks.
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

// y[0] = 3 y[0] + x[0]: its result depends on the order of dispatches.
constexpr std::string_view step_source = R"(
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
@compute @workgroup_size(1) fn main() { y[0] = 3 * y[0] + x[0]; }
)";

TEST(CommandList, RefusesBadBindings) {
  Device& device = test_device();
  const Kernel add = add_kernel(device);
  const Buffer a = expect_value(device.make_buffer(4096, "a"));
  const Buffer b = expect_value(device.make_buffer(4096, "b"));
  const View x = a.view();
  const View y = b.view();
  struct Case {
    std::vector<Binding> bindings;
    std::vector<std::string_view> message;  // empty: accepted
  };
  const Case cases[] = {
      {{read(x), read_write(y)}, {}},
      {{read(x)}, {"1 bindings, expected 2"}},
      {{read(x), read_write(y), read(x)}, {"3 bindings, expected 2"}},
      {{read_write(x), read_write(y)}, {"binding 0", "read_write, expected read"}},
      {{uniform(x), read_write(y)}, {"binding 0", "uniform, expected read"}},
      {{read(x), read(y)}, {"binding 1", "read, expected read_write"}},
      {{read(x.part(256, 256)), read_write(y)}, {}},
      {{read(x.part(4, 256)), read_write(y)}, {"binding 0", "offset 4", "a multiple of"}},
      {{read(x.part(3840, 256)), read_write(y)}, {}},
      {{read(x.part(3840, 260)), read_write(y)}, {"binding 0", "260 bytes at offset 3840", "4096"}},
      {{read(x.part(UINT64_MAX - 255, 512)), read_write(y)}, {"binding 0", "buffer a"}},
      {{read(x.part(0, 0)), read_write(y)}, {"binding 0", "0 bytes"}},
      {{read(x.part(0, 6)), read_write(y)}, {"binding 0", "6 bytes"}},
      {{read(View{}), read_write(y)}, {"binding 0", "buffer 0"}},
      {{read(x), read_write(x)}, {"binding 0", "binding 1", "overlap"}},
      {{read(x.part(0, 512)), read_write(x.part(256, 512))}, {"overlap"}},
      {{read(x.part(0, 256)), read_write(x.part(256, 256))}, {"share a buffer"}},
  };
  for (const Case& c : cases) {
    CommandList commands(device);
    const Result<void> result = commands.dispatch(add, c.bindings, {});
    if (c.message.empty()) {
      EXPECT_TRUE(accepted(result));
      EXPECT_TRUE(accepted(device.submit({.items = {{&commands, {}}}})));
    } else {
      EXPECT_TRUE(refused(result, ErrorCode::gpu_validation, {"kernel add"}));
      for (const auto part : c.message) {
        EXPECT_TRUE(refused(result, ErrorCode::gpu_validation, {part}));
      }
      EXPECT_EQ(commands.dispatch_count(), 0u);
    }
  }
  CommandList commands(device);
  EXPECT_TRUE(refused(commands.dispatch(UINT32_MAX, {read(x), read_write(y)}, {}),
                      ErrorCode::gpu_validation, {"4294967295"}));
}

TEST(CommandList, AllowsDisjointWritesToOneBufferOnly) {
  constexpr std::string_view source = R"(
@group(0) @binding(0) var<storage, read_write> x: u32;
@group(0) @binding(1) var<storage, read_write> y: u32;
@compute @workgroup_size(1) fn main() { x = 1; y = 2; }
)";
  constexpr Access bindings[] = {Access::read_write, Access::read_write};
  Device& device = test_device();
  const Kernel kernel = expect_value(device.kernel_from_source("two_writes", source, bindings));
  const Buffer buffer = test::poisoned(512);
  const View first = buffer.view().part(0, 256);
  const View second = buffer.view().part(256, 256);
  CommandList commands(device);
  EXPECT_TRUE(refused(commands.dispatch(kernel, {read_write(first), read_write(first)}, {}),
                      ErrorCode::gpu_validation, {"two_writes", "overlap"}));
  EXPECT_TRUE(accepted(commands.dispatch(kernel, {read_write(first), read_write(second)}, {})));
  test::run(commands);
  EXPECT_EQ(download_as<uint32_t>(buffer.view())[0], 1u);
  EXPECT_EQ(download_as<uint32_t>(buffer.view())[64], 2u);
}

TEST(CommandList, RefusesLargeUniforms) {
  constexpr std::string_view source = R"(
@group(0) @binding(0) var<uniform> x: vec4<u32>;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
@compute @workgroup_size(1) fn main() { y[0] = x.w; }
)";
  constexpr Access bindings[] = {Access::uniform, Access::read_write};
  Device& device = test_device();
  const Kernel kernel = expect_value(device.kernel_from_source("uniform", source, bindings));
  const Buffer x = upload(std::vector<uint32_t>(65540 / 4, 9));
  const Buffer y = test::poisoned(4);
  CommandList commands(device);
  EXPECT_TRUE(refused(commands.dispatch(kernel, {uniform(x.view()), read_write(y.view())}, {}),
                      ErrorCode::limit_exceeded, {"uniform", "binding 0", "65540", "65536"}));
  EXPECT_TRUE(accepted(
      commands.dispatch(kernel, {uniform(x.view().part(0, 65536)), read_write(y.view())}, {})));
  test::run(commands);
  EXPECT_EQ(download_as<uint32_t>(y.view()), std::vector<uint32_t>{9});

  // Too small for the kernel's vec4, which WebGPU finds at submission; the device lives on.
  CommandList small(device);
  EXPECT_TRUE(
      accepted(small.dispatch(kernel, {uniform(x.view().part(0, 4)), read_write(y.view())}, {})));
  EXPECT_TRUE(refused(device.submit({.items = {{&small, {}}}, .read_back = y.view()}),
                      ErrorCode::gpu_validation));
  EXPECT_TRUE(accepted(device.submit({.items = {{&commands, {}}}})));
}

TEST(CommandList, CountsItsBytes) {
  Device& device = test_device();
  const Buffer x = upload(std::vector<uint32_t>{1, 2});
  const Buffer y = expect_value(device.make_buffer(64, "y"));
  CommandList commands(device);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(accepted(
        commands.dispatch(add_kernel(device), {read(x.view()), read_write(y.view())}, {})));
  }
  EXPECT_EQ(commands.dispatch_count(), 3u);
  for (const DispatchInfo& dispatch : commands.dispatches()) {
    EXPECT_EQ(dispatch.bytes_read, 8u + 64);
    EXPECT_EQ(dispatch.bytes_written, 64u);
  }
  EXPECT_EQ(&commands.device(), &device);
}

TEST(Submission, SizesItsDispatchesByTheExtent) {
  Device& device = test_device();
  const Buffer x = upload(std::vector<uint32_t>(64, 1));
  CommandList commands(device);
  const Buffer y = test::poisoned(64 * 4);
  ASSERT_TRUE(accepted(commands.dispatch(add_kernel(device), {read(x.view()), read_write(y.view())},
                                         {.groups = 2, .rows_per_group = 4})));
  const auto written = [&](Extent extent) {
    const std::vector<uint32_t> zeros(64, 0);
    test::expect_success(device.write(y.view(), std::as_bytes(std::span(zeros))));
    test::run(commands, extent);
    const std::vector<uint32_t> values = download_as<uint32_t>(y.view());
    return std::accumulate(values.begin(), values.end(), 0u) / 2;
  };
  EXPECT_EQ(written({.rows = 1, .positions = 1}), 2u);
  EXPECT_EQ(written({.rows = 4, .positions = 1}), 2u);
  EXPECT_EQ(written({.rows = 5, .positions = 900}), 4u);
  EXPECT_TRUE(refused(device.submit({.items = {{&commands, {.rows = 0}}}}),
                      ErrorCode::invalid_argument, {"add", "0 workgroups"}));
}

TEST(Submission, RunsWithoutBoundsChecks) {
  const std::unique_ptr<Device> device = open_device({.bounds_checks = false});
  const Buffer x = upload(std::vector<uint32_t>{1, 2}, *device);
  const Buffer y = test::poisoned(8, *device);
  CommandList commands(*device);
  ASSERT_TRUE(accepted(commands.dispatch(add_kernel(*device),
                                         {read(x.view()), read_write(y.view())}, {.groups = 2})));
  test::run(commands);
  EXPECT_EQ(download_as<uint32_t>(y.view(), *device), (std::vector<uint32_t>{2, 3}));
}

TEST(Submission, RunsMoreThan65535Workgroups) {
  Device& device = test_device();
  const Kernel add = add_kernel(device);
  for (const uint32_t count : {65535u, 65536u, 65537u, 131071u}) {
    std::vector<uint32_t> values(count);
    std::iota(values.begin(), values.end(), 0);
    const Buffer x = upload(values);
    const Buffer y = test::poisoned(count * 4);
    CommandList commands(device);
    ASSERT_TRUE(accepted(
        commands.dispatch(add, {read(x.view()), read_write(y.view())}, {.groups = count})));
    test::run(commands);
    for (uint32_t& value : values) ++value;
    EXPECT_EQ(download_as<uint32_t>(y.view()), values) << count;
  }
}

TEST(Submission, OnePassGivesWhatOnePassPerDispatchGives) {
  Device& device = test_device();
  const Kernel step = expect_value(device.kernel_from_source("step", step_source, add_bindings));
  const Buffer a = upload(std::vector<uint32_t>{1});
  const Buffer b = upload(std::vector<uint32_t>{2});
  const Buffer y = upload(std::vector<uint32_t>{0});
  const Buffer copy = expect_value(device.make_buffer(4, "copy"));
  CommandList first(device);
  CommandList second(device);
  uint32_t expected = 0;
  for (int i = 0; i < 8; ++i) {
    const Buffer& x = i % 3 == 0 ? a : b;
    ASSERT_TRUE(accepted(
        (i < 5 ? first : second).dispatch(step, {read(x.view()), read_write(y.view())}, {})));
    expected = 3 * expected + (i % 3 == 0 ? 1 : 2);
  }
  ASSERT_TRUE(
      accepted(second.dispatch(add_kernel(device), {read(y.view()), read_write(copy.view())}, {})));
  for (const Passes passes : {Passes::one_per_submission, Passes::one_per_dispatch}) {
    const uint32_t zero[] = {0};
    test::expect_success(device.write(y.view(), std::as_bytes(std::span(zero))));
    Readback readback = expect_value(device.submit(
        {.items = {{&first, {}}, {&second, {}}}, .read_back = copy.view(), .passes = passes}));
    test::expect_success(device.wait(readback));
    const std::vector<std::byte> bytes = expect_value(readback.take());
    ASSERT_EQ(bytes.size(), 4u);
    uint32_t result = 0;
    std::copy(bytes.begin(), bytes.end(), std::as_writable_bytes(std::span(&result, 1)).begin());
    EXPECT_EQ(result, expected + 1);
  }
}

TEST(Submission, RefusesListsOfAnotherDeviceAndOfDeadBuffers) {
  Device& device = test_device();
  const std::unique_ptr<Device> other = open_device();
  const CommandList foreign(*other);
  EXPECT_TRUE(accepted(other->submit({.items = {{&foreign, {}}}})));
  EXPECT_TRUE(refused(device.submit({.items = {{&foreign, {}}}}), ErrorCode::gpu_validation,
                      {"another device"}));

  const Buffer x = upload(std::vector<uint32_t>{1});
  CommandList commands(device);
  View stale;
  {
    const Buffer y = expect_value(device.make_buffer(4, "y"));
    stale = y.view();
    ASSERT_TRUE(
        accepted(commands.dispatch(add_kernel(device), {read(x.view()), read_write(stale)}, {})));
    EXPECT_TRUE(accepted(device.submit({.items = {{&commands, {}}}, .read_back = stale})));
  }
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(refused(device.submit({.items = {{&commands, {}}}}), ErrorCode::gpu_validation,
                        {fmt::format("buffer {}", stale.buffer), "any more"}));
  }
  EXPECT_TRUE(refused(device.submit({.read_back = stale}), ErrorCode::gpu_validation));
  EXPECT_TRUE(accepted(device.submit({.read_back = x.view()})));
}

TEST(Readback, ComesInAnyOrder) {
  Device& device = test_device();
  const Kernel step = expect_value(device.kernel_from_source("step", step_source, add_bindings));
  const Buffer x = upload(std::vector<uint32_t>{1});
  const Buffer y = upload(std::vector<uint32_t>{0});
  CommandList commands(device);
  ASSERT_TRUE(accepted(commands.dispatch(step, {read(x.view()), read_write(y.view())}, {})));
  const uint32_t expected[] = {1, 4, 13, 40};
  for (int repeat = 0; repeat < 3; ++repeat) {
    const uint32_t zero[] = {0};
    test::expect_success(device.write(y.view(), std::as_bytes(std::span(zero))));
    std::vector<Readback> readbacks;
    for (int i = 0; i < 4; ++i) {
      readbacks.push_back(
          expect_value(device.submit({.items = {{&commands, {}}}, .read_back = y.view()})));
    }
    // The one with index 1 is dropped unread.
    for (const size_t i : {2u, 0u, 3u}) {
      test::expect_success(device.wait(readbacks[i]));
      EXPECT_TRUE(readbacks[i].ready());
      EXPECT_EQ(std::to_integer<uint32_t>(expect_value(readbacks[i].take())[0]), expected[i]);
    }
  }
}

TEST(Readback, IsNotTakenBeforeItIsReady) {
  constexpr std::string_view source = R"(
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@compute @workgroup_size(1) fn main() {
  for (var i = 0u; i < 20000000u; i++) { y[0] = y[0] * 3 + i; }
}
)";
  constexpr Access bindings[] = {Access::read_write};
  Device& device = test_device();
  const Kernel slow = expect_value(device.kernel_from_source("slow", source, bindings));
  ASSERT_TRUE(accepted(device.finish_kernels()));
  const Buffer y = upload(std::vector<uint32_t>{1});
  CommandList commands(device);
  ASSERT_TRUE(accepted(commands.dispatch(slow, {read_write(y.view())}, {})));
  Readback readback =
      expect_value(device.submit({.items = {{&commands, {}}}, .read_back = y.view()}));
  EXPECT_TRUE(refused(readback.take(), ErrorCode::invalid_argument, {"4 bytes", "wait"}));
  test::expect_success(device.wait(readback));
  EXPECT_EQ(expect_value(readback.take()).size(), 4u);
}

TEST(Readback, IsEmptyAndReadyWithoutARange) {
  Readback none;
  EXPECT_TRUE(none.ready());
  EXPECT_TRUE(expect_value(none.take()).empty());
  Readback submitted = expect_value(test_device().submit({}));
  EXPECT_TRUE(submitted.ready());
  EXPECT_TRUE(accepted(test_device().wait(submitted)));
}

}  // namespace
}  // namespace tandem::gpu
