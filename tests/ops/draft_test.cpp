// The drafting of a round, on the GPU and on the host, against a table.
#include "ops/draft/draft.h"

#include <gtest/gtest.h>

#include <cstring>

#include "ops/harness.h"
#include "ops/untouched.h"
#include "support/device.h"

namespace tandem::ops {
namespace {

constexpr uint32_t context = 16;
constexpr uint32_t none = test::poison_bits;  // a place of the timeline that is not written
const std::vector<uint32_t> stop_ids = {1, 106};

struct State {
  Step step;
  std::vector<Step> draft_steps;
  std::vector<uint32_t> timeline;
};

// The steps and the drafts chosen by tokens[k], in one submission each as in a round.
State on_gpu(const Step& before, const std::vector<uint32_t>& tokens,
             const std::vector<uint32_t>& script) {
  const auto drafts = static_cast<uint32_t>(tokens.size());
  const gpu::Buffer step = test::upload(before);
  const gpu::Buffer draft_steps = test::poisoned(drafts * draft_step_bytes);
  const gpu::Buffer timeline = test::poisoned((context + 1) * 4);
  const gpu::Buffer stops = test::upload(std::vector<uint32_t>{2, stop_ids[0], stop_ids[1]});
  gpu::Buffer scripted;
  if (!script.empty()) scripted = test::upload(script);
  gpu::CommandList commands(test::test_device());
  test::expect_success(
      record(commands, DraftSteps{drafts, context, step.view(), draft_steps.view()}));
  std::vector<gpu::Buffer> chosen;
  for (uint32_t k = 0; k < drafts; ++k) {
    chosen.push_back(test::upload(std::vector{tokens[k]}));
    test::expect_success(record(commands, Draft{.drafts = drafts,
                                                .index = k,
                                                .context = context,
                                                .step = step.view(),
                                                .draft_steps = draft_steps.view(),
                                                .token = chosen.back().view(),
                                                .script = scripted.view(),
                                                .stop_ids = stops.view(),
                                                .timeline = timeline.view()}));
  }
  test::run(commands);
  State state = {
      test::download_as<Step>(step.view())[0], {}, test::download_as<uint32_t>(timeline.view())};
  for (uint32_t k = 0; k < drafts; ++k) {
    const gpu::View view = draft_steps.view().part(k * draft_step_bytes, sizeof(Step));
    state.draft_steps.push_back(test::download_as<Step>(view)[0]);
  }
  return state;
}

State on_host(const Step& before, const std::vector<uint32_t>& tokens,
              const std::vector<uint32_t>& script) {
  State state = {before, std::vector<Step>(tokens.size()),
                 std::vector<uint32_t>(context + 1, test::poison_bits)};
  draft_steps_reference(context, state.step, state.draft_steps);
  for (uint32_t k = 0; k < tokens.size(); ++k) {
    draft_reference(k, tokens[k], script, stop_ids, state.step, state.draft_steps, state.timeline);
  }
  return state;
}

std::vector<uint32_t> script_of(uint32_t position, uint32_t token) {
  std::vector<uint32_t> script(context + 1, unscripted);
  script[position] = token;
  return script;
}

struct Case {
  Step step;
  std::vector<uint32_t> tokens;
  std::vector<uint32_t> script;
  std::vector<uint32_t> drafts;      // as they lie behind the newest token
  std::vector<uint32_t> draft_rows;  // of each draft step in the end
  uint32_t rows;                     // of the round in the end
  const char* why;
};

const Case cases[] = {
    {{.position = 4, .rows = 1, .remaining = 9}, {7, 8}, {}, {7, 8}, {1, 1}, 3, "two drafts"},
    {{.position = 0, .rows = 1, .remaining = 9},
     {7, 8, 9},
     {},
     {7, 8, 9},
     {1, 1, 1},
     4,
     "three drafts"},
    {{.position = 4, .rows = 1, .remaining = 2},
     {7, 8},
     {},
     {7, none},
     {1, 0},
     2,
     "one row to verify"},
    {{.position = 4, .rows = 1, .remaining = 1},
     {7, 8},
     {},
     {none, none},
     {0, 0},
     1,
     "the last token"},
    {{.position = 4, .rows = 0}, {7, 8}, {}, {none, none}, {0, 0}, 0, "a stopped step"},
    {{.position = 4, .rows = 1, .remaining = 9},
     {1, 8},
     {},
     {1, none},
     {1, 0},
     2,
     "the first draft stops"},
    {{.position = 4, .rows = 1, .remaining = 9},
     {7, 106},
     {},
     {7, 106},
     {1, 1},
     3,
     "the second draft stops"},
    {{.position = 4, .rows = 1, .remaining = 9},
     {2, 3},
     {},
     {2, 3},
     {1, 1},
     3,
     "the count is no stop id"},
    {{.position = 13, .rows = 1, .remaining = 9},
     {7, 8},
     {},
     {7, 8},
     {1, 1},
     3,
     "the last positions"},
    {{.position = 14, .rows = 1, .remaining = 9},
     {7, 8},
     {},
     {7, none},
     {1, 0},
     2,
     "the last but one"},
    {{.position = 15, .rows = 1, .remaining = 9},
     {7, 8},
     {},
     {none, none},
     {0, 0},
     1,
     "the last position"},
    {{.position = 4, .rows = 3, .remaining = 2},
     {7, 8},
     {},
     {7, none},
     {1, 0},
     2,
     "whatever the rows were"},
    {{.position = 4, .rows = 1, .remaining = 9},
     {7, 8},
     script_of(6, 5),
     {7, 5},
     {1, 1},
     3,
     "a scripted draft"},
    {{.position = 4, .rows = 1, .remaining = 9},
     {7, 8},
     script_of(5, 0),
     {0, 8},
     {1, 1},
     3,
     "scripted to 0"},
    {{.position = 4, .rows = 1, .remaining = 9},
     {1, 8},
     script_of(5, 5),
     {5, 8},
     {1, 1},
     3,
     "no longer stops"},
    {{.position = 4, .rows = 1, .remaining = 9},
     {7, 8},
     script_of(5, 1),
     {1, none},
     {1, 0},
     2,
     "made to stop"},
    {{.position = 4, .rows = 1, .remaining = 9},
     {7, 8},
     script_of(4, 5),
     {7, 8},
     {1, 1},
     3,
     "by position"},
};

TEST(Draft, DraftsLieBehindTheNewestTokenAndEndAtAStop) {
  for (Case c : cases) {
    c.step.rounds = 3, c.step.token = 2, c.step.accepted = 1;
    for (const State& state :
         {on_gpu(c.step, c.tokens, c.script), on_host(c.step, c.tokens, c.script)}) {
      Step expected = c.step;
      expected.rows = c.rows;
      EXPECT_EQ(std::memcmp(&state.step, &expected, sizeof(Step)), 0) << c.why;
      for (uint32_t k = 0; k < c.tokens.size(); ++k) {
        expected.position = c.step.position + k;
        expected.rows = c.draft_rows[k];
        EXPECT_EQ(std::memcmp(&state.draft_steps[k], &expected, sizeof(Step)), 0)
            << c.why << ", step " << k;
      }
      std::vector<uint32_t> timeline(context + 1, none);
      std::copy(c.drafts.begin(), c.drafts.end(), timeline.begin() + c.step.position + 1);
      EXPECT_EQ(state.timeline, timeline) << c.why;
    }
  }
}

TEST(Draft, RefusesWhatItsKernelsCannotCompute) {
  const gpu::Buffer step = test::upload(Step{.rows = 3});
  const gpu::Buffer steps = test::poisoned(2 * draft_step_bytes), token = test::poisoned(4);
  const gpu::Buffer stops = test::upload(std::vector{0u});
  const gpu::Buffer timeline = test::poisoned((context + 1) * 4);
  const gpu::Buffer script = test::poisoned((context + 1) * 4);
  gpu::CommandList commands(test::test_device());
  EXPECT_TRUE(record(commands, DraftSteps{2, context, step.view(), steps.view()}));
  EXPECT_FALSE(record(commands, DraftSteps{0, context, step.view(), steps.view()}));
  EXPECT_FALSE(record(commands, DraftSteps{3, context, step.view(), steps.view()}));
  EXPECT_FALSE(record(commands, DraftSteps{2, context, {}, steps.view()}));
  const Draft good = {.drafts = 2,
                      .index = 1,
                      .context = context,
                      .step = step.view(),
                      .draft_steps = steps.view(),
                      .token = token.view(),
                      .script = script.view(),
                      .stop_ids = stops.view(),
                      .timeline = timeline.view()};
  EXPECT_TRUE(record(commands, good));
  const auto refused = [&](auto change) {
    Draft bad = good;
    change(bad);
    return !record(commands, bad);
  };
  EXPECT_TRUE(refused([](Draft& op) { op.drafts = 3; }));
  EXPECT_TRUE(refused([](Draft& op) { op.index = 2; }));
  EXPECT_TRUE(refused([](Draft& op) { op.context = context + 1; }));
  EXPECT_TRUE(refused([](Draft& op) { op.script.bytes -= 4; }));
  EXPECT_TRUE(refused([](Draft& op) { op.timeline.bytes -= 4; }));
  EXPECT_TRUE(refused([](Draft& op) { op.token = {}; }));
  EXPECT_TRUE(refused([](Draft& op) { op.stop_ids = {}; }));
}

}  // namespace
}  // namespace tandem::ops
