// The end of a round, on the GPU and on the host, against tables; and whole loops against the
// tokens that a plain loop would emit.
#include "ops/accept/accept.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "ops/draft/draft.h"
#include "ops/harness.h"
#include "ops/untouched.h"
#include "support/device.h"

namespace tandem::ops {
namespace {

constexpr uint32_t context = 16;
const std::vector<uint32_t> stop_ids = {1, 106, 50};

constexpr uint32_t columns = 128;

float logit(uint32_t row, uint32_t token) {
  return static_cast<float>(row) + 0.5f * static_cast<float>(token);
}

std::vector<float> some_logits(size_t rows) {
  std::vector<float> logits(rows * columns);
  for (uint32_t i = 0; i < logits.size(); ++i) logits[i] = logit(i / columns, i % columns);
  return logits;
}

bool equal(const Step& a, const Step& b) { return std::memcmp(&a, &b, sizeof(Step)) == 0; }

// The state that rounds share, and their results.
struct Rounds {
  Step step;
  std::vector<uint32_t> timeline;
  RoundRecord record;
};

Rounds start(const Step& step, const std::vector<uint32_t>& drafts) {
  Rounds rounds = {step, std::vector<uint32_t>(context + 1, test::poison_bits), {}};
  std::copy(drafts.begin(), drafts.end(), rounds.timeline.begin() + step.position + 1);
  constexpr uint32_t p = test::poison_bits;
  rounds.record = {p, p, p, p, p, StopCode{p}, {p, p, p}, {p, p, p, p}};
  return rounds;
}

std::vector<uint32_t> counted(const std::vector<uint32_t>& ids) {
  std::vector<uint32_t> result = {static_cast<uint32_t>(ids.size())};
  result.insert(result.end(), ids.begin(), ids.end());
  return result;
}

// `count` replays of one recorded round.
Rounds on_gpu(const Rounds& before, uint32_t drafts, const std::vector<uint32_t>& targets,
              const std::vector<uint32_t>& ids, int count = 1) {
  const gpu::Buffer step = test::upload(before.step), target_buffer = test::upload(targets);
  const gpu::Buffer stops = test::upload(counted(ids));
  const gpu::Buffer timeline = test::upload(before.timeline);
  const gpu::Buffer result = test::poisoned(sizeof(RoundRecord));
  test::expect_success(
      test::test_device().write(result.view(), std::as_bytes(std::span(&before.record, 1))));
  const gpu::Buffer logits = test::upload(some_logits(drafts + 1));
  gpu::CommandList commands(test::test_device());
  test::expect_success(record(commands, Accept{.context = context,
                                               .drafts = drafts,
                                               .columns = columns,
                                               .step = step.view(),
                                               .targets = target_buffer.view(),
                                               .logits = logits.view(),
                                               .stop_ids = stops.view(),
                                               .timeline = timeline.view(),
                                               .record = result.view()}));
  for (int i = 0; i < count; ++i) test::run(commands);
  return {test::download_as<Step>(step.view())[0], test::download_as<uint32_t>(timeline.view()),
          test::download_as<RoundRecord>(result.view())[0]};
}

Rounds on_host(Rounds rounds, uint32_t drafts, const std::vector<uint32_t>& targets,
               const std::vector<uint32_t>& ids) {
  const Step before = rounds.step;
  const auto [step, record] = accept_reference(before, context, drafts, targets,
                                               some_logits(targets.size()), ids, rounds.timeline);
  rounds.step = step;
  if (before.rows > 0) rounds.record = record;
  return rounds;
}

void expect_equal(const Rounds& actual, const Rounds& expected, const std::string& why) {
  EXPECT_TRUE(equal(actual.step, expected.step)) << why;
  EXPECT_EQ(actual.timeline, expected.timeline) << why;
  EXPECT_EQ(actual.record, expected.record) << why;
}

struct PlainCase {
  Step step;
  uint32_t token;
  uint32_t rows;  // after the round
  StopCode stop;
  const char* why;
};

const PlainCase plain_cases[] = {
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

TEST(Accept, WithoutDraftsMovesOnByOneAndStopsInOrder) {
  for (const PlainCase& c : plain_cases) {
    Rounds expected = start(c.step, {});
    expected.step = {.position = c.step.position + 1,
                     .rows = c.rows,
                     .remaining = c.step.remaining - 1,
                     .rounds = c.step.rounds + 1,
                     .token = c.token,
                     .stop = static_cast<uint32_t>(c.stop)};
    expected.timeline[expected.step.position] = c.token;
    expected.record = {.number = c.step.rounds + 1,
                       .position = c.step.position,
                       .rows = 1,
                       .count = 1,
                       .stop = c.stop,
                       .targets = {c.token},
                       .logits = {logit(0, c.token)}};
    const Rounds before = start(c.step, {});
    expect_equal(on_gpu(before, 0, {c.token}, stop_ids), expected, c.why);
    expect_equal(on_host(before, 0, {c.token}, stop_ids), expected, c.why);
  }
}

struct Case {
  Step step;
  std::vector<uint32_t> drafts;
  std::vector<uint32_t> targets;
  uint32_t accepted;
  uint32_t count;
  StopCode stop;
  const char* why;
};

const Case cases[] = {
    {{.position = 3, .rows = 3, .remaining = 9}, {7, 8}, {7, 8, 9}, 2, 3, StopCode::none, "both"},
    {{.position = 3, .rows = 3, .remaining = 9}, {7, 8}, {7, 5, 9}, 1, 2, StopCode::none, "one"},
    {{.position = 3, .rows = 3, .remaining = 9},
     {7, 8},
     {6, 8, 9},
     0,
     1,
     StopCode::none,
     "none, though the second would agree"},
    {{.position = 3, .rows = 2, .remaining = 9},
     {7, 9},
     {7, 9, 4},
     1,
     2,
     StopCode::none,
     "only the rows that ran count"},
    {{.position = 3, .rows = 1, .remaining = 9},
     {7, 8},
     {7, 8, 9},
     0,
     1,
     StopCode::none,
     "one row, as after prefill"},
    {{.position = 3, .rows = 3, .remaining = 3},
     {7, 8},
     {7, 8, 9},
     2,
     3,
     StopCode::length,
     "the last three tokens"},
    {{.position = 3, .rows = 3, .remaining = 4},
     {7, 8},
     {7, 8, 9},
     2,
     3,
     StopCode::none,
     "one token remains"},
    {{.position = 3, .rows = 3, .remaining = 4},
     {7, 8},
     {7, 5, 9},
     1,
     2,
     StopCode::none,
     "two tokens remain"},
    {{.position = 3, .rows = 3, .remaining = 2},
     {7, 8},
     {7, 8, 9},
     1,
     2,
     StopCode::length,
     "more rows than tokens remain"},
    {{.position = 13, .rows = 3, .remaining = 9},
     {7, 8},
     {7, 8, 9},
     2,
     3,
     StopCode::context,
     "to the end of the context"},
    {{.position = 12, .rows = 3, .remaining = 9},
     {7, 8},
     {7, 8, 9},
     2,
     3,
     StopCode::none,
     "one position is left"},
    {{.position = 12, .rows = 3, .remaining = 9},
     {7, 8},
     {7, 5, 9},
     1,
     2,
     StopCode::none,
     "two positions are left"},
    {{.position = 14, .rows = 3, .remaining = 9},
     {7, 8},
     {7, 8, 9},
     1,
     2,
     StopCode::context,
     "more rows than positions are left"},
    {{.position = 3, .rows = 3, .remaining = 9},
     {1, 8},
     {1, 8, 9},
     2,
     1,
     StopCode::stop_id,
     "a stop id cuts what was accepted"},
    {{.position = 3, .rows = 3, .remaining = 9},
     {7, 50},
     {7, 50, 9},
     2,
     2,
     StopCode::stop_id,
     "the second draft stops"},
    {{.position = 3, .rows = 3, .remaining = 9},
     {7, 8},
     {7, 8, 106},
     2,
     3,
     StopCode::stop_id,
     "the token after the drafts stops"},
    {{.position = 3, .rows = 3, .remaining = 9},
     {7, 8},
     {7, 1, 9},
     1,
     2,
     StopCode::stop_id,
     "the corrected token stops"},
    {{.position = 3, .rows = 3, .remaining = 9},
     {1, 8},
     {7, 8, 9},
     0,
     1,
     StopCode::none,
     "a rejected stop id does not stop"},
    {{.position = 13, .rows = 3, .remaining = 3},
     {7, 8},
     {7, 8, 106},
     2,
     3,
     StopCode::stop_id,
     "stop id before length and context"},
    {{.position = 13, .rows = 3, .remaining = 3},
     {7, 8},
     {7, 8, 9},
     2,
     3,
     StopCode::length,
     "length before context"},
    {{.position = 3, .rows = 3, .remaining = 9}, {0, 0}, {0, 0, 0}, 2, 3, StopCode::none, "zeros"},
};

TEST(Accept, TakesTheLongestPrefixThatTheTargetAgreesWith) {
  for (Case c : cases) {
    c.step.rounds = 5, c.step.accepted = 1;
    const Rounds before = start(c.step, c.drafts);
    Rounds expected = before;
    const uint32_t rows = std::min({c.step.rows, c.step.remaining, context - c.step.position});
    expected.step = {.position = c.step.position + c.count,
                     .rows = c.stop == StopCode::none ? 1u : 0u,
                     .remaining = c.step.remaining - c.count,
                     .rounds = 6,
                     .token = c.targets[c.count - 1],
                     .stop = static_cast<uint32_t>(c.stop),
                     .accepted = c.accepted};
    RoundRecord& record = expected.record;
    record = {.number = 6,
              .position = c.step.position,
              .rows = rows,
              .count = c.count,
              .accepted = c.accepted,
              .stop = c.stop};
    std::copy_n(c.drafts.begin(), rows - 1, record.drafts.begin());
    std::copy_n(c.targets.begin(), rows, record.targets.begin());
    for (uint32_t i = 0; i < rows; ++i) record.logits[i] = logit(i, c.targets[i]);
    for (uint32_t i = 0; i < c.count; ++i) {
      expected.timeline[c.step.position + 1 + i] = c.targets[i];
    }
    expect_equal(on_gpu(before, 2, c.targets, stop_ids), expected, c.why);
    expect_equal(on_host(before, 2, c.targets, stop_ids), expected, c.why);
    EXPECT_EQ(accepted_drafts(record), c.accepted) << c.why;
  }
}

// Whatever is drafted, and however the target is seeded, what is emitted is the target's own chain
// of tokens: each a function of the position before it.
TEST(Accept, EmitsTheTokensOfAPlainLoop) {
  std::mt19937 generator(1);
  const auto any = [&](uint32_t below) { return static_cast<uint32_t>(generator() % below); };
  for (int trial = 0; trial < 40; ++trial) {
    std::vector<uint32_t> chain(context + 1);  // the token at each position
    for (uint32_t& token : chain) token = 2 + any(trial % 2 == 0 ? 3 : 60);  // 50 stops
    const Step first = {.position = 2, .rows = 1, .remaining = 1 + any(16)};

    Rounds plain = start(first, {});
    while (plain.step.rows > 0) {
      plain = on_host(plain, 0, {chain[plain.step.position + 1]}, stop_ids);
    }

    Rounds drafting = start(first, {});
    while (drafting.step.rows > 0) {
      Step& step = drafting.step;
      std::vector<Step> draft_steps(2);
      draft_steps_reference(context, step, draft_steps);
      for (const Step& draft : draft_steps) step.rows += draft.rows;
      std::vector<uint32_t> targets(3, 77);
      for (uint32_t row = 0; row < step.rows; ++row) {
        targets[row] = chain[step.position + 1 + row];
        if (row > 0) drafting.timeline[step.position + row] = any(3) == 0 ? 9 : targets[row - 1];
      }
      const Rounds host = on_host(drafting, 2, targets, stop_ids);
      drafting = on_gpu(drafting, 2, targets, stop_ids);
      expect_equal(drafting, host, fmt::format("trial {}", trial));
    }
    EXPECT_EQ(drafting.step.position, plain.step.position);
    EXPECT_EQ(drafting.step.remaining, plain.step.remaining);
    EXPECT_EQ(drafting.step.token, plain.step.token);
    EXPECT_EQ(drafting.step.stop, plain.step.stop);
    const auto emitted = [](const Rounds& rounds) {
      return std::vector<uint32_t>(rounds.timeline.begin(),
                                   rounds.timeline.begin() + rounds.step.position + 1);
    };
    EXPECT_EQ(emitted(drafting), emitted(plain)) << "trial " << trial;
  }
}

TEST(Accept, WithoutStopIdsNoTokenStops) {
  const Rounds before = start({.position = 4, .rows = 3, .remaining = 9}, {1, 106});
  EXPECT_EQ(on_gpu(before, 2, {1, 106, 50}, {}).step.position, 7u);
  EXPECT_EQ(on_host(before, 2, {1, 106, 50}, {}).step.position, 7u);
}

TEST(Accept, AStepOfNoRowsStaysAsItIs) {
  for (uint32_t stop = 0; stop <= static_cast<uint32_t>(StopCode::context); ++stop) {
    for (uint32_t drafts : {0u, 2u}) {
      const Rounds before = start({.position = 5,
                                   .rows = 0,
                                   .remaining = 3,
                                   .rounds = 4,
                                   .token = 9,
                                   .stop = stop,
                                   .accepted = 1},
                                  {7, 8});
      expect_equal(on_gpu(before, drafts, {7, 8, 106}, stop_ids), before, "on the GPU");
      expect_equal(on_host(before, drafts, {7, 8, 106}, stop_ids), before, "on the host");
    }
  }
}

TEST(Accept, RoundsPastTheStopChangeNothing) {
  const Rounds before = start({.position = 2, .rows = 1, .remaining = 3}, {});
  const Rounds three = on_gpu(before, 0, {7}, stop_ids, 3);
  EXPECT_EQ(three.step.stop, static_cast<uint32_t>(StopCode::length));
  EXPECT_EQ(three.step.position, 5u);
  EXPECT_EQ(three.step.rounds, 3u);
  expect_equal(on_gpu(before, 0, {7}, stop_ids, 8), three, "eight rounds");
}

TEST(Accept, CountsAcceptedDraftsFromARecordAlone) {
  RoundRecord record = {.rows = 4, .accepted = 9, .drafts = {5, 6, 7}, .targets = {5, 6, 7, 8}};
  EXPECT_EQ(accepted_drafts(record), 3u);
  record.rows = 2;
  EXPECT_EQ(accepted_drafts(record), 1u);
  record.rows = 0;
  EXPECT_EQ(accepted_drafts(record), 0u);
  record.rows = 4, record.drafts[1] = 0;
  EXPECT_EQ(accepted_drafts(record), 1u);
}

TEST(Accept, RefusesWhatItsKernelCannotCompute) {
  const gpu::Buffer step = test::upload(Step{.rows = 1});
  const gpu::Buffer targets = test::poisoned(12), stops = test::upload(counted({}));
  const gpu::Buffer timeline = test::poisoned((context + 1) * 4), result = test::poisoned(68);
  const gpu::Buffer logits = test::poisoned(3 * columns * 4);
  const Accept good = {.context = context,
                       .drafts = 2,
                       .columns = columns,
                       .step = step.view(),
                       .targets = targets.view(),
                       .logits = logits.view(),
                       .stop_ids = stops.view(),
                       .timeline = timeline.view(),
                       .record = result.view()};
  gpu::CommandList commands(test::test_device());
  EXPECT_TRUE(record(commands, good));
  const auto refused = [&](auto change) {
    Accept bad = good;
    change(bad);
    return !record(commands, bad);
  };
  EXPECT_TRUE(refused([](Accept& op) { op.drafts = 3; }));  // targets are too few
  EXPECT_TRUE(refused([](Accept& op) { op.drafts = 4; }));
  EXPECT_TRUE(refused([](Accept& op) { op.context = context + 1; }));
  EXPECT_TRUE(refused([](Accept& op) { op.step.bytes = 28; }));
  EXPECT_TRUE(refused([](Accept& op) { op.stop_ids = {}; }));
  EXPECT_TRUE(refused([](Accept& op) { op.record.bytes = 64; }));
  EXPECT_TRUE(refused([](Accept& op) { op.columns = columns + 1; }));
}

}  // namespace
}  // namespace tandem::ops
