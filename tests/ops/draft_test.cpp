// The drafting of a round, on the GPU and on the host, against a table.
#include "ops/draft/draft.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "ops/harness.h"
#include "ops/untouched.h"
#include "support/compare.h"
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

// The target's embedding and a hidden state, for rounds of `max_rows` rows.
struct Inputs {
  static constexpr uint32_t vocabulary = 200, columns = 64, max_rows = 3;
  test::TestMatrix table = test::random_matrix(spec::WeightType::q4_0, vocabulary, columns, 1);
  std::vector<float> x = test::random_floats(max_rows * columns, 2);
  test::GpuMatrix matrix = test::upload(table);
  gpu::Buffer hidden = test::upload(x), y = test::poisoned(2 * columns * sizeof(float));

  DraftInput op(uint32_t drafts, gpu::View step, gpu::View timeline, gpu::View draft_steps) const {
    return {.drafts = drafts,
            .context = context,
            .table = matrix.matrix,
            .scale = 8,
            .step = step,
            .timeline = timeline,
            .x = hidden.view(),
            .y = y.view(),
            .draft_steps = draft_steps,
            .max_rows = max_rows};
  }
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
  const Inputs inputs;
  test::expect_success(
      record(commands, inputs.op(drafts, step.view(), timeline.view(), draft_steps.view())));
  std::vector<gpu::Buffer> chosen;
  for (uint32_t k = 0; k < drafts; ++k) {
    chosen.push_back(test::upload(std::vector{tokens[k]}));
    test::expect_success(record(commands, Draft{.drafts = drafts,
                                                .index = k,
                                                .context = context,
                                                .step = step.view(),
                                                .draft_steps = draft_steps.view(),
                                                .tokens = chosen.back().view(),
                                                .scores = {},
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
    draft_reference(k, {&tokens[k], 1}, {}, script, stop_ids, state.step, state.draft_steps,
                    state.timeline);
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

TEST(Draft, BeginsWithTheNewestTokensEmbeddingBesideTheHiddenStateBeforeIt) {
  const Inputs inputs;
  constexpr uint32_t columns = Inputs::columns;
  std::vector<uint32_t> timeline(context + 1);
  for (uint32_t i = 0; i <= context; ++i) timeline[i] = 12 * i + 1;
  const gpu::Buffer ids = test::upload(timeline), draft_steps = test::poisoned(draft_step_bytes);
  const gpu::Buffer in_lanes = test::upload(test::in_lane_order(inputs.x, columns));
  for (const bool lanes : {false, true}) {
    for (const auto& [position, accepted] : {std::pair{0u, 0u}, {3u, 1u}, {15u, 2u}, {16u, 9u}}) {
      const gpu::Buffer step =
          test::upload(Step{.position = position, .rows = 1, .accepted = accepted});
      DraftInput op = inputs.op(1, step.view(), ids.view(), draft_steps.view());
      if (lanes) op.x = in_lanes.view(), op.x_format = RowFormat::lanes;
      gpu::CommandList commands(test::test_device());
      test::expect_success(record(commands, op));
      test::run(commands);
      std::vector<float> expected(columns);
      dequantize_row(inputs.table.host(), timeline[position], expected);
      for (float& value : expected) value *= op.scale;
      // Beyond x no row can have been accepted.
      const auto row = inputs.x.begin() + std::min(accepted, Inputs::max_rows - 1) * columns;
      expected.insert(expected.end(), row, row + columns);
      EXPECT_TRUE(test::same_bits(test::download(inputs.y.view()), expected))
          << position << ", row " << accepted << ", lanes " << lanes;
    }
  }
}

// A table in parts: each writes what it owns.
TEST(Draft, TheTokenMayLieInAnyPart) {
  const Inputs inputs;
  constexpr uint32_t columns = Inputs::columns;
  const test::GpuMatrix split = test::upload(inputs.table, 128);
  for (const uint32_t token : {5u, 127u, 128u, 199u}) {
    const gpu::Buffer ids = test::upload(std::vector(context + 1, token));
    const gpu::Buffer step = test::upload(Step{.position = 2, .rows = 1});
    const gpu::Buffer draft_steps = test::poisoned(draft_step_bytes);
    DraftInput op = inputs.op(1, step.view(), ids.view(), draft_steps.view());
    op.table = split.matrix;
    gpu::CommandList commands(test::test_device());
    test::expect_success(record(commands, op));
    EXPECT_EQ(commands.dispatch_count(), 2u);
    test::run(commands);
    std::vector<float> expected(columns);
    dequantize_row(inputs.table.host(), token, expected);
    for (float& value : expected) value *= op.scale;
    expected.insert(expected.end(), inputs.x.begin(), inputs.x.begin() + columns);
    EXPECT_TRUE(test::same_bits(test::download(inputs.y.view()), expected)) << token;
  }
}

// Draft 0 chosen by scores, on the GPU.
uint32_t best_on_gpu(const std::vector<float>& scores, const std::vector<uint32_t>& tokens) {
  const gpu::Buffer step = test::upload(Step{.position = 2, .rows = 1, .remaining = 9});
  const gpu::Buffer draft_steps = test::poisoned(draft_step_bytes);
  const gpu::Buffer timeline = test::poisoned((context + 1) * 4),
                    stops = test::upload(std::vector{0u});
  const gpu::Buffer ids = test::upload(tokens), values = test::upload(scores);
  gpu::CommandList commands(test::test_device());
  const Inputs inputs;
  test::expect_success(
      record(commands, inputs.op(1, step.view(), timeline.view(), draft_steps.view())));
  test::expect_success(record(commands, Draft{.drafts = 1,
                                              .context = context,
                                              .step = step.view(),
                                              .draft_steps = draft_steps.view(),
                                              .scored = static_cast<uint32_t>(scores.size()),
                                              .tokens = ids.view(),
                                              .scores = values.view(),
                                              .script = {},
                                              .stop_ids = stops.view(),
                                              .timeline = timeline.view()}));
  test::run(commands);
  return test::download_as<uint32_t>(timeline.view())[3];
}

uint32_t best_on_host(const std::vector<float>& scores, const std::vector<uint32_t>& tokens) {
  Step step{.position = 2, .rows = 1, .remaining = 9};
  std::vector<Step> draft_steps(1);
  std::vector<uint32_t> timeline(context + 1);
  draft_steps_reference(context, step, draft_steps);
  draft_reference(0, tokens, scores, {}, {}, step, draft_steps, timeline);
  return timeline[3];
}

TEST(Draft, TakesTheTokenOfTheLargestScoreAndOfEqualsTheLowest) {
  // Few distinct values, and tokens in no order, to 262144.
  for (uint32_t count : {1u, 2u, 255u, 256u, 257u, 512u, 4096u, 5000u}) {
    std::vector<float> scores = test::random_floats(count, count, 4);
    for (float& score : scores) score = std::round(score);
    std::vector<uint32_t> tokens(count);
    for (uint32_t i = 0; i < count; ++i) tokens[i] = i * 2654435761u >> 14;
    uint32_t expected = UINT32_MAX;
    const float largest = *std::max_element(scores.begin(), scores.end());
    for (uint32_t i = 0; i < count; ++i) {
      if (scores[i] == largest) expected = std::min(expected, tokens[i]);
    }
    EXPECT_EQ(best_on_gpu(scores, tokens), expected) << count;
    EXPECT_EQ(best_on_host(scores, tokens), expected) << count;
  }
}

TEST(Draft, TokensCountOnlyWhereScoresAreEqual) {
  std::vector<float> scores(4096, -2.0f);
  std::vector<uint32_t> tokens(4096, 0);
  scores[3000] = scores[10] = 1.0f;
  tokens[3000] = 7, tokens[10] = 260000;
  EXPECT_EQ(best_on_gpu(scores, tokens), 7u);
  scores[10] = 1.5f;
  EXPECT_EQ(best_on_gpu(scores, tokens), 260000u);
  scores[10] = -0.0f, scores[3000] = 0.0f;
  EXPECT_EQ(best_on_gpu(scores, tokens), 7u);
}

TEST(Draft, OrdersScoresOfAllMagnitudes) {
  const std::vector<float> ascending = {-3e38f, -1.5f, -1.25f, -1e-30f, 1e-30f, 1.25f, 3e38f};
  std::vector<float> scores(600, ascending[0]);
  std::vector<uint32_t> tokens(600);
  for (uint32_t i = 0; i < 600; ++i) tokens[i] = 1000 - i;
  for (size_t i = 1; i < ascending.size(); ++i) {
    scores[90 * i] = ascending[i];
    EXPECT_EQ(best_on_gpu(scores, tokens), tokens[90 * i]) << ascending[i];
  }
}

TEST(Draft, RefusesWhatItsKernelsCannotCompute) {
  const gpu::Buffer step = test::upload(Step{.rows = 3});
  const gpu::Buffer steps = test::poisoned(2 * draft_step_bytes), tokens = test::poisoned(12);
  const gpu::Buffer scores = test::poisoned(12);
  const gpu::Buffer stops = test::upload(std::vector{0u});
  const gpu::Buffer timeline = test::poisoned((context + 1) * 4);
  const gpu::Buffer script = test::poisoned((context + 1) * 4);
  gpu::CommandList commands(test::test_device());
  const Inputs inputs;
  const DraftInput good_input = inputs.op(2, step.view(), timeline.view(), steps.view());
  EXPECT_TRUE(record(commands, good_input));
  const auto refused_input = [&](auto change) {
    DraftInput bad = good_input;
    change(bad);
    return !record(commands, bad);
  };
  EXPECT_TRUE(refused_input([](DraftInput& op) { op.drafts = 0; }));
  EXPECT_TRUE(refused_input([](DraftInput& op) { op.drafts = 3; }));
  EXPECT_TRUE(refused_input([](DraftInput& op) { op.step = {}; }));
  EXPECT_TRUE(refused_input([](DraftInput& op) { op.context = context + 1; }));
  EXPECT_TRUE(refused_input([](DraftInput& op) { op.max_rows = 4; }));
  EXPECT_TRUE(refused_input([](DraftInput& op) { op.y.bytes -= 4; }));
  EXPECT_TRUE(refused_input([](DraftInput& op) { op.table.columns = 48; }));
  EXPECT_TRUE(refused_input([](DraftInput& op) { op.table.parts[0].rows = 201; }));
  const Draft good = {.drafts = 2,
                      .index = 1,
                      .context = context,
                      .step = step.view(),
                      .draft_steps = steps.view(),
                      .scored = 3,
                      .tokens = tokens.view(),
                      .scores = scores.view(),
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
  EXPECT_TRUE(refused([](Draft& op) { op.tokens = {}; }));
  EXPECT_TRUE(refused([](Draft& op) { op.scores = {}; }));
  EXPECT_TRUE(refused([](Draft& op) { op.scored = 0; }));
  EXPECT_TRUE(refused([](Draft& op) { op.scored = 4; }));
  EXPECT_TRUE(refused([](Draft& op) { op.tokens.bytes = 8; }));
  EXPECT_TRUE(refused([](Draft& op) { op.stop_ids = {}; }));
}

}  // namespace
}  // namespace tandem::ops
