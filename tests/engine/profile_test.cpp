// Profiles and traces of made-up times.
#include "engine/profile.h"

#include <gtest/gtest.h>

namespace tandem::engine {
namespace {

gpu::DispatchTime dispatch(std::string_view kernel, uint64_t begin_ns, uint64_t end_ns,
                           std::optional<gpu::Traffic> traffic = {}, gpu::Extent extent = {}) {
  return {{.kernel = kernel, .traffic = traffic}, extent, begin_ns, end_ns};
}

TEST(Profile, SumsByKernelTheLongestFirst) {
  const std::vector<SubmissionTimes> submissions = {
      {dispatch("norm", 100, 110), dispatch("linear", 110, 150), dispatch("norm", 150, 160)},
      {dispatch("linear", 1000, 1100), dispatch("argmax", 1100, 1120)}};
  const Profile found = profile(submissions);
  ASSERT_EQ(found.kernels.size(), 3u);
  EXPECT_EQ(found.kernels[0].kernel, "linear");
  EXPECT_EQ(found.kernels[0].calls, 2u);
  EXPECT_EQ(found.kernels[0].time_ns, 140u);
  EXPECT_EQ(found.kernels[1].kernel, "argmax") << "of equal times the first by name";
  EXPECT_EQ(found.kernels[2].kernel, "norm");
  EXPECT_EQ(found.kernels[2].calls, 2u);
  EXPECT_EQ(found.calls, 5u);
  EXPECT_EQ(found.time_ns, 180u);
  EXPECT_EQ(found.gap_ns, 0u) << "what lies between submissions is no gap";
}

TEST(Profile, GapsAreWhatNoDispatchCovers) {
  const std::vector<SubmissionTimes> submissions = {
      {dispatch("a", 0, 50), dispatch("b", 10, 20), dispatch("c", 40, 60), dispatch("d", 67, 70)},
      {dispatch("a", 100, 101), dispatch("b", 104, 105)}};
  const Profile found = profile(submissions);
  EXPECT_EQ(found.gap_ns, 7u + 3u);
  EXPECT_EQ(found.time_ns, 50u + 10 + 20 + 3 + 1 + 1);
}

TEST(Profile, BytesFollowTheExtentAndAreUnknownIfOneCallsAre) {
  const gpu::Traffic traffic{.fixed = 1000, .per_row = 10, .per_position = 1};
  const std::vector<SubmissionTimes> submissions = {
      {dispatch("known", 0, 100, traffic, {.rows = 2, .positions = 30}),
       dispatch("known", 100, 200, traffic, {.rows = 1, .positions = 7}),
       dispatch("mixed", 200, 300, traffic), dispatch("mixed", 300, 400),
       dispatch("mixed", 400, 500, traffic), dispatch("instant", 500, 500, traffic)}};
  const Profile found = profile(submissions);
  ASSERT_EQ(found.kernels.size(), 3u);
  EXPECT_EQ(found.kernels[0].kernel, "mixed");
  EXPECT_FALSE(found.kernels[0].bytes);
  EXPECT_FALSE(gigabytes_per_second(found.kernels[0]));
  EXPECT_EQ(found.kernels[1].bytes, 1050u + 1017u);
  EXPECT_EQ(gigabytes_per_second(found.kernels[1]), 2067 / 200.0);
  EXPECT_EQ(found.kernels[2].bytes, 1011u);
  EXPECT_FALSE(gigabytes_per_second(found.kernels[2])) << "no rate in no time";
}

TEST(Profile, OfNothingIsEmpty) {
  for (const auto& submissions : {std::vector<SubmissionTimes>{}, {SubmissionTimes{}}}) {
    const Profile found = profile(submissions);
    EXPECT_TRUE(found.kernels.empty());
    EXPECT_EQ(found.calls + found.time_ns + found.gap_ns, 0u);
  }
  EXPECT_EQ(trace({}).at("traceEvents"), Json::array());
}

TEST(Profile, TraceHasATrackForEachMethodAndMicroseconds) {
  const Track tracks[] = {
      {"prefill", {{dispatch("late", 5000, 7500)}}},
      {"decode",
       {{dispatch("first", 2000, 3000)},
        {dispatch("linear", 3000, 3001, gpu::Traffic{.per_row = 4}, {.rows = 3, .positions = 9})}}},
  };
  const Json events = trace(tracks).at("traceEvents");
  ASSERT_EQ(events.size(), 5u);
  EXPECT_EQ(events[0].at("ph"), "M");
  EXPECT_EQ(events[0].at("args").at("name"), "prefill");
  EXPECT_EQ(events[2].at("args").at("name"), "decode");
  EXPECT_NE(events[0].at("tid"), events[2].at("tid"));
  const Json& late = events[1];
  EXPECT_EQ(late.at("ph"), "X");
  EXPECT_EQ(late.at("name"), "late");
  EXPECT_EQ(late.at("tid"), events[0].at("tid"));
  EXPECT_EQ(late.at("ts"), 3.0);
  EXPECT_EQ(late.at("dur"), 2.5);
  EXPECT_FALSE(late.at("args").contains("bytes"));
  EXPECT_EQ(events[3].at("ts"), 0.0) << "the earliest, whatever its track";
  const Json& linear = events[4];
  EXPECT_EQ(linear.at("dur"), 0.001);
  EXPECT_EQ(linear.at("args"),
            (Json{{"submission", 1}, {"rows", 3}, {"positions", 9}, {"bytes", 12}}));
}

}  // namespace
}  // namespace tandem::engine
