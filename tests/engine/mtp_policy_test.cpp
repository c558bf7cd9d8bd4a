// The choice between plain rounds and rounds with drafts, on a clock that the test makes up.
#include "engine/mtp_policy.h"

#include <gtest/gtest.h>

#include <vector>

namespace tandem::engine {
namespace {

constexpr uint32_t window = MtpPolicy::window;

// A model whose rounds take as long as the test says.
struct Clock {
  double plain_ms = 2;    // a round of one token
  double drafted_ms = 3;  // a round with drafts
  uint32_t accepted = 2;  // drafts, in each of these

  // Runs a round and gives its tokens.
  uint32_t round(MtpPolicy& policy) const {
    const bool drafts = policy.drafts();
    const uint32_t tokens = drafts ? accepted + 1 : 1;
    policy.add(drafts, drafts ? drafted_ms : plain_ms, tokens);
    return tokens;
  }
  void run(MtpPolicy& policy, uint32_t tokens) const {
    for (uint32_t done = 0; done < tokens;) done += round(policy);
  }
  // Tokens until the way changes.
  uint32_t until_change(MtpPolicy& policy) const {
    const bool drafts = policy.drafts();
    uint32_t tokens = 0;
    while (policy.drafts() == drafts && tokens < 100000) tokens += round(policy);
    return tokens;
  }
};

constexpr Clock drafts_win{.plain_ms = 2, .drafted_ms = 3, .accepted = 1};
constexpr Clock plain_wins{.plain_ms = 2, .drafted_ms = 3, .accepted = 0};

MtpPolicy automatic() {
  MtpPolicy policy;
  policy.set_mode(Mtp::automatic);
  return policy;
}

TEST(MtpPolicy, MeasuresDraftsThenPlainAndKeepsTheFaster) {
  for (const auto& [clock, drafts] : {std::pair(drafts_win, true), {plain_wins, false}}) {
    MtpPolicy policy = automatic();
    EXPECT_TRUE(policy.drafts());
    EXPECT_EQ(clock.until_change(policy), window);
    EXPECT_FALSE(policy.drafts());
    clock.run(policy, window);
    EXPECT_EQ(policy.drafts(), drafts);
  }
}

TEST(MtpPolicy, TrialsInVainGetRarerUpToTheBound) {
  for (const auto& [clock, drafts] : {std::pair(drafts_win, true), {plain_wins, false}}) {
    MtpPolicy policy = automatic();
    clock.run(policy, 2 * window);
    if (drafts) clock.run(policy, window);  // the change back is a trial, too
    uint32_t interval = MtpPolicy::first_interval;
    for (int trial = 0; trial < 7; ++trial) {
      ASSERT_EQ(policy.drafts(), drafts);
      const uint32_t since_change = trial == 0 ? window : 0;
      EXPECT_EQ(clock.until_change(policy) + since_change, interval) << trial;
      EXPECT_EQ(clock.until_change(policy), window) << "a trial lasts one window";
      interval = std::min(2 * interval, MtpPolicy::longest_interval);
    }
    EXPECT_EQ(interval, MtpPolicy::longest_interval);
  }
}

TEST(MtpPolicy, ReturnsWhereDraftsBecomeFaster) {
  MtpPolicy policy = automatic();
  plain_wins.run(policy, 2 * window + 100);
  ASSERT_FALSE(policy.drafts());
  drafts_win.run(policy, MtpPolicy::first_interval + window);
  EXPECT_TRUE(policy.drafts());
  // The interval starts anew: the next trial of plain comes after the first one.
  EXPECT_LE(drafts_win.until_change(policy), MtpPolicy::first_interval);
}

TEST(MtpPolicy, LeavesDraftsAtOnceWhereTheyBecomeSlower) {
  MtpPolicy policy = automatic();
  drafts_win.run(policy, 4 * window);
  ASSERT_TRUE(policy.drafts());
  EXPECT_LE(plain_wins.until_change(policy), 2 * window);
  plain_wins.run(policy, window);
  EXPECT_FALSE(policy.drafts());
  EXPECT_GE(plain_wins.until_change(policy), MtpPolicy::first_interval - window);
}

TEST(MtpPolicy, RoundsOfTheOtherWaySayNothing) {
  MtpPolicy policy = automatic();
  for (int i = 0; i < 1000; ++i) policy.add(false, 1e-3, 1);
  EXPECT_TRUE(policy.drafts()) << "plain rounds while drafts are measured";
  drafts_win.run(policy, window);
  ASSERT_FALSE(policy.drafts());
  for (int i = 0; i < 1000; ++i) policy.add(true, 1e3, 3);
  EXPECT_FALSE(policy.drafts());
  drafts_win.run(policy, window);
  EXPECT_TRUE(policy.drafts()) << "neither the fast plain rounds nor the slow drafts count";
}

TEST(MtpPolicy, OnAndOffNeverChange) {
  for (const auto& [mode, drafts] : {std::pair(Mtp::on, true), {Mtp::off, false}}) {
    for (const Clock& clock : {drafts_win, plain_wins}) {
      MtpPolicy policy;
      policy.set_mode(mode);
      for (int i = 0; i < 2000; ++i) {
        ASSERT_EQ(policy.drafts(), drafts);
        clock.round(policy);
      }
    }
  }
}

TEST(MtpPolicy, KeepsWhatItMeasuredFromOneGenerationToTheNext) {
  MtpPolicy policy = automatic();
  plain_wins.run(policy, 2 * window);
  ASSERT_FALSE(policy.drafts());
  policy.set_mode(Mtp::on);
  drafts_win.run(policy, 10 * window);
  policy.set_mode(Mtp::automatic);
  EXPECT_FALSE(policy.drafts()) << "what was asked for was not measured";
}

}  // namespace
}  // namespace tandem::engine
