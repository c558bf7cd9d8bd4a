// Timed submissions: one pair of timestamps for each dispatch, in order, of the right submission.
#include <gtest/gtest.h>

#include "gpu/probe.h"

namespace tandem::gpu {
namespace {

using test::expect_value;
using test::open_device;
using test::test_device;
using test::upload;

// `count` dispatches, each of which adds another number to x.
class Additions {
 public:
  Additions(Device& device, uint32_t count)
      : x_(upload(std::vector<uint32_t>{7}, device)),
        y_(test::poisoned(4, device)),
        commands_(device) {
    for (uint32_t i = 0; i < count; ++i) {
      const Constant addend[] = {{"ADDEND", static_cast<double>(i % 5)}};
      test::expect_success(commands_.dispatch(add_kernel(device, addend),
                                              {read(x_.view()), read_write(y_.view())}, {}));
    }
  }

  Readback submit(View read_back = {}) {
    return expect_value(commands_.device().submit(
        {.items = {{&commands_, {}}}, .read_back = read_back, .passes = Passes::timed}));
  }
  View sum() const { return y_.view(); }
  const CommandList& commands() const { return commands_; }

 private:
  Buffer x_;
  Buffer y_;
  CommandList commands_;
};

std::vector<DispatchTime> harvest(Device& device, const Readback& readback) {
  test::expect_success(device.wait(readback));
  return expect_value(readback.times());
}

// One for each dispatch of the list, in its order, none before the one that precedes it.
void expect_times(const std::vector<DispatchTime>& times, const CommandList& commands) {
  const std::vector<DispatchInfo> dispatches = commands.dispatches();
  ASSERT_EQ(times.size(), dispatches.size());
  for (size_t i = 0; i < times.size(); ++i) {
    EXPECT_EQ(times[i].dispatch.kernel, dispatches[i].kernel) << i;
    EXPECT_EQ(times[i].dispatch.bytes_read, dispatches[i].bytes_read) << i;
    EXPECT_GT(times[i].begin_ns, 0u) << i;
    EXPECT_LE(times[i].begin_ns, times[i].end_ns) << i;
    if (i == 0) continue;
    EXPECT_LE(times[i - 1].begin_ns, times[i].begin_ns) << i;
    EXPECT_LE(times[i - 1].end_ns, times[i].end_ns) << i;
  }
  EXPECT_LT(times.front().begin_ns, times.back().end_ns);
}

TEST(Timing, HasOneEntryForEachDispatchInOrder) {
  Device& device = test_device();
  ASSERT_TRUE(device.info().timestamps);
  // 2048 dispatches fill a query set.
  for (const uint32_t count : {1u, 7u, 2048u, 2049u, 4100u}) {
    Additions additions(device, count);
    expect_times(harvest(device, additions.submit()), additions.commands());
  }
}

TEST(Timing, IsFinerThanADispatch) {
  Device& device = test_device();
  Additions additions(device, 64);
  constexpr uint64_t rounding = 65536;  // ns, of a browser's timestamps
  uint64_t rounded = 0;
  for (const DispatchTime& time : harvest(device, additions.submit())) {
    rounded += (time.begin_ns % rounding == 0) + (time.end_ns % rounding == 0);
  }
  EXPECT_LT(rounded, 64u);
}

TEST(Timing, ComesWithTheBytesReadBack) {
  Device& device = test_device();
  for (const uint32_t count : {1u, 5u}) {
    Additions additions(device, count);
    Readback readback = additions.submit(additions.sum());
    expect_times(harvest(device, readback), additions.commands());
    expect_times(expect_value(readback.times()), additions.commands());
    const std::vector<std::byte> bytes = expect_value(readback.take());
    ASSERT_EQ(bytes.size(), 4u);
    EXPECT_EQ(std::to_integer<uint32_t>(bytes[0]), 7 + count - 1);
    EXPECT_TRUE(refused(readback.times(), ErrorCode::invalid_argument, {"taken already"}));
  }
}

TEST(Timing, IsOfItsOwnSubmissionInWhateverOrderItIsTaken) {
  Device& device = test_device();
  Additions first(device, 3);
  Additions second(device, 5);
  for (int repeat = 0; repeat < 3; ++repeat) {
    std::vector<Readback> readbacks;
    for (int i = 0; i < 6; ++i) readbacks.push_back((i % 2 == 0 ? first : second).submit());
    std::vector<std::vector<DispatchTime>> times(readbacks.size());
    for (const size_t i : {4u, 0u, 5u, 2u, 1u}) {  // 3 is dropped
      times[i] = harvest(device, readbacks[i]);
      expect_times(times[i], (i % 2 == 0 ? first : second).commands());
    }
    constexpr std::pair<size_t, size_t> in_order[] = {{0, 1}, {1, 2}, {2, 4}, {4, 5}};
    for (const auto& [earlier, later] : in_order) {
      EXPECT_LE(times[earlier].front().begin_ns, times[later].front().begin_ns);
      EXPECT_LE(times[earlier].back().end_ns, times[later].back().end_ns);
    }
  }
}

TEST(Timing, IsRefusedWhereThereAreNoTimestamps) {
  const std::unique_ptr<Device> device = open_device({.timestamps = false});
  EXPECT_FALSE(device->info().timestamps);
  Additions additions(*device, 2);
  Submission submission{.items = {{&additions.commands(), {}}}, .passes = Passes::timed};
  EXPECT_TRUE(refused(device->submit(submission), ErrorCode::unsupported,
                      {device->info().name, "no timestamps"}));
  submission.passes = Passes::one_per_dispatch;
  EXPECT_TRUE(accepted(device->submit(submission)));
}

TEST(Timing, IsRefusedOfNothing) {
  Device& device = test_device();
  EXPECT_TRUE(refused(device.submit({.passes = Passes::timed}), ErrorCode::invalid_argument,
                      {"without a dispatch"}));
  Additions additions(device, 1);
  const Readback untimed = expect_value(
      device.submit({.items = {{&additions.commands(), {}}}, .read_back = additions.sum()}));
  EXPECT_TRUE(refused(untimed.times(), ErrorCode::invalid_argument, {"not timed"}));
  EXPECT_TRUE(refused(Readback().times(), ErrorCode::invalid_argument, {"not timed"}));
}

TEST(Timing, OfALostDeviceIsTheLoss) {
  const std::unique_ptr<Device> device = open_device();
  Additions additions(*device, 2);
  const Readback readback = additions.submit();
  device->lose();
  EXPECT_TRUE(refused(device->wait(readback), ErrorCode::device_lost));
  EXPECT_TRUE(refused(readback.times(), ErrorCode::device_lost));
}

}  // namespace
}  // namespace tandem::gpu
