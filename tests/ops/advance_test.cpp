// The end of a round, on the GPU and on the host, against a table.
#include "ops/advance/advance.h"

#include <gtest/gtest.h>

#include <cstring>

#include "ops/harness.h"
#include "ops/untouched.h"
#include "support/device.h"

namespace tandem::ops {
namespace {

constexpr uint32_t context = 16;
const std::vector<uint32_t> stop_ids = {1, 106, 50};

struct Case {
  Step step;
  uint32_t token;
  uint32_t rows;  // after the round
  StopCode stop;
  const char* why;
};

const Case cases[] = {
    {{.position = 4, .rows = 1, .remaining = 9, .rounds = 2}, 7, 1, StopCode::none, "goes on"},
    {{.position = 0, .rows = 1, .remaining = 2, .rounds = 0}, 0, 1, StopCode::none, "token 0"},
    {{.position = 4, .rows = 1, .remaining = 9}, 1, 0, StopCode::stop_id, "the first stop id"},
    {{.position = 4, .rows = 1, .remaining = 9}, 50, 0, StopCode::stop_id, "the last stop id"},
    {{.position = 4, .rows = 1, .remaining = 9}, 3, 1, StopCode::none, "the count is no stop id"},
    {{.position = 4, .rows = 1, .remaining = 1}, 7, 0, StopCode::length, "the last token"},
    {{.position = 15, .rows = 1, .remaining = 9}, 7, 0, StopCode::context, "the last position"},
    {{.position = 14, .rows = 1, .remaining = 9}, 7, 1, StopCode::none, "one position is left"},
    {{.position = 15, .rows = 1, .remaining = 1}, 106, 0, StopCode::stop_id, "stop id first"},
    {{.position = 15, .rows = 1, .remaining = 1}, 7, 0, StopCode::length, "length before context"},
};

bool equal(const Step& a, const Step& b) { return std::memcmp(&a, &b, sizeof(Step)) == 0; }

struct Result {
  Step step;
  std::vector<uint32_t> timeline;
};

// `rounds` replays of one recorded round.
Result on_gpu(const Step& before, uint32_t token, const std::vector<uint32_t>& ids,
              int rounds = 1) {
  const gpu::Buffer step = test::upload(before);
  const gpu::Buffer chosen = test::upload(std::vector{token});
  std::vector<uint32_t> counted = {static_cast<uint32_t>(ids.size())};
  counted.insert(counted.end(), ids.begin(), ids.end());
  const gpu::Buffer stops = test::upload(counted);
  const gpu::Buffer timeline = test::poisoned((context + 1) * sizeof(uint32_t));
  gpu::CommandList commands(test::test_device());
  test::expect_success(record(commands, Advance{.context = context,
                                                .step = step.view(),
                                                .token = chosen.view(),
                                                .stop_ids = stops.view(),
                                                .timeline = timeline.view()}));
  for (int round = 0; round < rounds; ++round) test::run(commands);
  return {test::download_as<Step>(step.view())[0], test::download_as<uint32_t>(timeline.view())};
}

Result on_host(const Step& before, uint32_t token, const std::vector<uint32_t>& ids) {
  std::vector<uint32_t> timeline(context + 1, test::poison_bits);
  const Step step = advance_reference(before, token, context, ids, timeline);
  return {step, timeline};
}

TEST(Advance, MovesOnAndStopsInOrder) {
  for (const Case& c : cases) {
    const Step expected = {.position = c.step.position + 1,
                           .rows = c.rows,
                           .remaining = c.step.remaining - 1,
                           .rounds = c.step.rounds + 1,
                           .token = c.token,
                           .stop = static_cast<uint32_t>(c.stop)};
    for (const Result& result :
         {on_gpu(c.step, c.token, stop_ids), on_host(c.step, c.token, stop_ids)}) {
      EXPECT_TRUE(equal(result.step, expected)) << c.why;
      for (uint32_t i = 0; i <= context; ++i) {
        EXPECT_EQ(result.timeline[i], i == expected.position ? c.token : test::poison_bits)
            << c.why;
      }
    }
  }
}

TEST(Advance, WithoutStopIdsNoTokenStops) {
  const Step step = {.position = 4, .rows = 1, .remaining = 9};
  EXPECT_EQ(on_gpu(step, 1, {}).step.rows, 1u);
  EXPECT_EQ(on_host(step, 1, {}).step.rows, 1u);
}

TEST(Advance, AStepOfNoRowsStaysAsItIs) {
  for (const StopCode code :
       {StopCode::none, StopCode::stop_id, StopCode::length, StopCode::context}) {
    const Step step = {.position = 5,
                       .rows = 0,
                       .remaining = 3,
                       .rounds = 4,
                       .token = 9,
                       .stop = static_cast<uint32_t>(code)};
    for (const Result& result : {on_gpu(step, 106, stop_ids), on_host(step, 106, stop_ids)}) {
      EXPECT_TRUE(equal(result.step, step));
      EXPECT_TRUE(test::untouched(std::span<const uint32_t>(result.timeline)));
    }
  }
}

TEST(Advance, RoundsPastTheStopChangeNothing) {
  const Step step = {.position = 2, .rows = 1, .remaining = 3};
  const Result three = on_gpu(step, 7, stop_ids, 3);
  const Result eight = on_gpu(step, 7, stop_ids, 8);
  EXPECT_EQ(three.step.stop, static_cast<uint32_t>(StopCode::length));
  EXPECT_EQ(three.step.position, 5u);
  EXPECT_EQ(three.step.rounds, 3u);
  EXPECT_TRUE(equal(three.step, eight.step));
  EXPECT_EQ(three.timeline, eight.timeline);
}

}  // namespace
}  // namespace tandem::ops
