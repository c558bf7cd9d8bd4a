// The pure parts of `tandem bench`: spreads, what fits a context, the fixed prompts.
#include "engine/bench.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "ops/draft/draft.h"

namespace tandem::engine {
namespace {

TEST(Bench, SpreadIsTheMedianBetweenTheExtremes) {
  struct Case {
    std::vector<double> samples;
    Spread expected;
  };
  for (const Case& c : std::vector<Case>{{{3}, {3, 3, 3}},
                                         {{4, 1}, {2.5, 1, 4}},
                                         {{9, 1, 2}, {2, 1, 9}},
                                         {{1, 100, 3, 2}, {2.5, 1, 100}},
                                         {{5, 4, 3, 2, 1}, {3, 1, 5}}}) {
    const Spread found = spread(c.samples);
    EXPECT_EQ(found.median, c.expected.median);
    EXPECT_EQ(found.min, c.expected.min);
    EXPECT_EQ(found.max, c.expected.max);
  }
}

TEST(Bench, PromptsThatLeaveNoRoomAreNamed) {
  using Lengths = std::vector<uint32_t>;
  const Lengths lengths{128, 8, 63, 64, UINT32_MAX};
  const PromptLengths prompts = prompts_in_context(lengths, 65, 128);
  EXPECT_EQ(prompts.fitting, (Lengths{8, 63}));
  EXPECT_EQ(prompts.too_long, (Lengths{128, 64, UINT32_MAX}));
  EXPECT_TRUE(prompts_in_context({}, 1, 1).fitting.empty());
}

TEST(Bench, PromptsAreFixedAndOrdinary) {
  for (const uint32_t vocabulary : {8192u, 262144u}) {
    const std::vector<uint32_t> ids = ordinary_tokens(vocabulary, 1000);
    ASSERT_EQ(ids.size(), 1000u);
    EXPECT_EQ(ids, ordinary_tokens(vocabulary, 1000));
    const auto [least, most] = std::minmax_element(ids.begin(), ids.end());
    EXPECT_GE(*least, vocabulary / 8);
    EXPECT_LT(*most, vocabulary - vocabulary / 8);
    EXPECT_GT(std::set<uint32_t>(ids.begin(), ids.end()).size(), 900u);
  }
}

TEST(Bench, ForcedDraftsAreRejectedWhereARoundIsToEnd) {
  constexpr uint32_t none = ops::unscripted;
  const std::vector<uint32_t> ids{4, 5, 6, 7, 8, 9};
  struct Case {
    uint32_t tokens_per_round;
    std::vector<uint32_t> drafts;
  };
  for (const Case& c : std::vector<Case>{{1, {none, none, 5, 6, 7, 8, 9, 0}},
                                         {2, {none, none, 5, 5, 7, 7, 9, 9}},
                                         {3, {none, none, 5, 5, 6, 8, 8, 9}}}) {
    EXPECT_EQ(forced_drafts(2, ids, c.tokens_per_round, 10), c.drafts) << c.tokens_per_round;
  }
}

}  // namespace
}  // namespace tandem::engine
