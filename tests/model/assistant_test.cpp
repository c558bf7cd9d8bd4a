// The assistant's CPU reference against transformers: the atlas pair's traces of the reference
// protocol (tests/golden/mtp.*), round by round with the target that verifies, and the random
// assistants of tests/golden/geometry.*.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "model/assistant_reference.h"
#include "model/models.h"
#include "support/compare.h"
#include "support/golden.h"
#include "support/refusal.h"

namespace tandem::test {
namespace {

using Json = nlohmann::json;
using Ids = std::vector<uint32_t>;

constexpr uint32_t k = 2;

const Golden& golden() {
  static const Golden golden("mtp");
  return golden;
}

const CpuPair& atlas_pair() {
  static const CpuPair pair = make_atlas_pair({.context = 512, .input_bound = 128});
  return pair;
}

const Json& trace(const std::string& name) {
  for (const Json& trace : golden().index().at("traces")) {
    if (trace.at("name") == name) return trace;
  }
  throw std::runtime_error("no trace " + name);
}

// Where a timeline stands between two rounds: the newest token has no KV yet.
struct State {
  uint32_t token = 0;
  uint32_t position = 0;
  std::vector<float> hidden;  // of the position before
};

// Runs ids at a position and gives the state that follows.
State advance(model::HiddenSequence& sequence, uint32_t position, const Ids& ids) {
  const Ids next = greedy(sequence, ids, 1, position);
  return {next.at(0), position + static_cast<uint32_t>(ids.size()), sequence.hidden()};
}

std::vector<model::Draft> draft(const model::AssistantReference& assistant,
                                model::Sequence& sequence, const State& state) {
  static const Ids stop_ids = {1, 5};
  auto drafts = assistant.draft(sequence, {.token = state.token,
                                           .position = state.position,
                                           .hidden = state.hidden,
                                           .steps = k,
                                           .stop_ids = stop_ids,
                                           .logits = true});
  EXPECT_TRUE(accepted(drafts));
  return drafts.value_or(std::vector<model::Draft>{});
}

void expect_step(const model::Draft& draft, const Json& step) {
  const std::vector<float> expected = step.at("top8_logits");
  Ids ids(draft.logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  std::stable_sort(ids.begin(), ids.end(),
                   [&](uint32_t a, uint32_t b) { return draft.logits[a] > draft.logits[b]; });
  ids.resize(expected.size());
  EXPECT_EQ(ids, step.at("top8").get<Ids>());
  EXPECT_EQ(draft.token, step.at("draft"));
  std::vector<float> found = {*std::min_element(draft.logits.begin(), draft.logits.end())};
  std::vector<float> wanted = {step.at("min_logit")};
  for (size_t i = 0; i < expected.size(); ++i) {
    found.push_back(draft.logits[ids[i]]);
    wanted.push_back(expected[i]);
  }
  EXPECT_TRUE(close(found, wanted, tolerance(Place::cpu)));
}

class MtpGolden : public ::testing::TestWithParam<std::string> {};

TEST_P(MtpGolden, InputsAndHiddenStatesOfTheFirstRound) {
  const auto sequence = atlas_pair().target->hidden_sequence();
  ASSERT_TRUE(accepted(sequence));
  const Json& expected = trace(GetParam());
  const State state = advance(**sequence, 0, expected.at("ids"));
  EXPECT_EQ(state.token, expected.at("clean").at("first_token"));
  std::vector<float> inputs, hidden;
  for (const model::Draft& step : draft(*atlas_pair().assistant, **sequence, state)) {
    inputs.insert(inputs.end(), step.input.begin(), step.input.end());
    hidden.insert(hidden.end(), step.hidden.begin(), step.hidden.end());
  }
  const std::string prefix = GetParam() + ".clean.first_round_";
  EXPECT_TRUE(close(inputs, golden().floats(prefix + "inputs"), tolerance(Place::cpu)));
  EXPECT_TRUE(close(hidden, golden().floats(prefix + "hidden"), tolerance(Place::cpu)));
}

TEST_P(MtpGolden, EveryRound) {
  const auto sequence = atlas_pair().target->hidden_sequence();
  ASSERT_TRUE(accepted(sequence));
  const Json& expected = trace(GetParam());
  State state = advance(**sequence, 0, expected.at("ids"));
  Ids generated = {state.token};
  const Json& rounds = expected.at("clean").at("rounds");
  for (size_t r = 0; r < rounds.size(); ++r) {
    SCOPED_TRACE(r);
    const Json& round = rounds[r];
    ASSERT_EQ(state.position, round.at("steps").at(0).at("position"));
    const std::vector<model::Draft> drafts = draft(*atlas_pair().assistant, **sequence, state);
    ASSERT_EQ(drafts.size(), round.at("steps").size());
    Ids rows = {state.token}, target;
    for (size_t i = 0; i < drafts.size(); ++i) {
      expect_step(drafts[i], round.at("steps")[i]);
      rows.push_back(drafts[i].token);
    }
    EXPECT_EQ(Ids(rows.begin() + 1, rows.end()), round.at("drafts").get<Ids>());
    // The target's row behind each of them; the first that the next draft does not equal ends the
    // round.
    std::vector<State> after;
    for (size_t i = 0; i < rows.size(); ++i) {
      after.push_back(advance(**sequence, state.position + static_cast<uint32_t>(i), {rows[i]}));
      target.push_back(after.back().token);
    }
    size_t matched = 0;
    while (matched < drafts.size() && rows[matched + 1] == target[matched]) ++matched;
    EXPECT_EQ(target, round.at("target").get<Ids>());
    EXPECT_EQ(matched, round.at("accepted"));
    state = after[matched];
    generated.insert(generated.end(), target.begin(),
                     target.begin() + static_cast<ptrdiff_t>(matched) + 1);
  }
  // What lies past the stop token is dropped.
  const Ids wanted = expected.at("clean").at("generated");
  ASSERT_GE(generated.size(), wanted.size());
  generated.resize(wanted.size());
  EXPECT_EQ(generated, wanted);
}

INSTANTIATE_TEST_SUITE_P(Traces, MtpGolden, ::testing::Values("short", "profile", "long"),
                         [](const auto& param_info) { return "cpu_" + param_info.param; });

// The scaled E2B of golden/geometry.json with one of its assistants.
struct GeometryPair {
  HashModel target;
  HashAssistant assistant;
  Json expected;
  Ids ids;
};

GeometryPair geometry_pair(const std::string& kind) {
  static const Golden geometry("geometry");
  for (const Json& entry : geometry.index().at("cases")) {
    if (!entry.contains("assistant")) continue;
    for (const Json& assistant : entry.at("assistant")) {
      if (assistant.at("kind") != kind) continue;
      const Json config = {
          {"backbone_hidden_size", entry.at("config").at("hidden_size")},
          {"text_config", assistant.at("text_config")},
          {"num_centroids", assistant.at("num_centroids")},
          {"centroid_intermediate_top_k", assistant.at("centroid_intermediate_top_k")},
          {"use_ordered_embeddings", kind == "ordered"}};
      const uint32_t seed = entry.at("seed");
      Json expected = assistant;
      expected["hidden"] = geometry.floats("e2b_scaled.assistant." + kind + ".hidden");
      expected["logits"] = geometry.floats("e2b_scaled.assistant." + kind + ".logits");
      return {{spec::read_config(entry.at("config").dump(), "target").value(), seed},
              {spec::read_assistant_config(config.dump(), "assistant").value(),
               assistant.at("seed"), seed},
              expected,
              geometry.ids("e2b_scaled.ids")};
    }
  }
  throw std::runtime_error("no assistant " + kind);
}

TEST(Assistant, RandomWeightsWithBothHeads) {
  for (const char* kind : {"plain", "ordered"}) {
    SCOPED_TRACE(kind);
    const GeometryPair made = geometry_pair(kind);
    const CpuPair pair = make_pair(made.target, made.assistant, {.context = 64});
    const auto sequence = pair.target->hidden_sequence();
    ASSERT_TRUE(accepted(sequence));
    const State state = advance(**sequence, 0, made.ids);
    EXPECT_EQ(state.token, made.expected.at("first_token"));
    EXPECT_EQ(state.position, made.expected.at("position"));
    std::vector<float> hidden, logits;
    Ids tokens;
    for (const model::Draft& step : draft(*pair.assistant, **sequence, state)) {
      tokens.push_back(step.token);
      hidden.insert(hidden.end(), step.hidden.begin(), step.hidden.end());
      logits.insert(logits.end(), step.logits.begin(), step.logits.end());
    }
    EXPECT_EQ(tokens, made.expected.at("drafts").get<Ids>());
    EXPECT_TRUE(
        close(hidden, made.expected.at("hidden").get<std::vector<float>>(), tolerance(Place::cpu)));
    EXPECT_TRUE(
        close(logits, made.expected.at("logits").get<std::vector<float>>(), tolerance(Place::cpu)));
  }
}

// With weights of zero all logits are equal: the first centroids win, and of their tokens the
// lowest.
TEST(Assistant, TiesGoToTheLowestCentroidAndToken) {
  const GeometryPair made = geometry_pair("ordered");
  const CpuPair pair = make_pair(made.target, made.assistant, {.context = 64});
  auto zero =
      model::AssistantReference::open(made.assistant.config, made.assistant.types(), *pair.target);
  ASSERT_TRUE(accepted(zero));
  const uint32_t vocabulary = made.assistant.config.text.vocabulary;
  const spec::OrderedHead& head = *made.assistant.config.ordered;
  Ids ordering(vocabulary);
  for (uint32_t i = 0; i < vocabulary; ++i) ordering[i] = vocabulary - 1 - i;
  ASSERT_TRUE(accepted(
      (*zero)->write("assistant.token_ordering.values", 0, std::as_bytes(std::span(ordering)))));
  const auto sequence = pair.target->hidden_sequence();
  const State state = advance(**sequence, 0, made.ids);
  const std::vector<model::Draft> drafts = draft(**zero, **sequence, state);
  const uint32_t scored = vocabulary / head.centroids * head.top_k;
  EXPECT_EQ(drafts.at(0).token, vocabulary - scored);
  for (uint32_t id = 0; id < vocabulary; ++id) {
    EXPECT_EQ(drafts[0].logits[id], id < vocabulary - scored ? -1 : 0) << id;
  }
}

TEST(Assistant, LogitsAreGivenOnlyWhenAskedFor) {
  const auto sequence = atlas_pair().target->hidden_sequence();
  const State state = advance(**sequence, 0, trace("short").at("ids"));
  const model::DraftRequest request{
      .token = state.token, .position = state.position, .hidden = state.hidden, .steps = 3};
  const auto drafts = atlas_pair().assistant->draft(**sequence, request);
  ASSERT_TRUE(accepted(drafts));
  ASSERT_EQ(drafts->size(), 3u);
  for (const model::Draft& step : *drafts) EXPECT_TRUE(step.logits.empty());
}

TEST(Assistant, Refusals) {
  const auto sequence = atlas_pair().target->hidden_sequence();
  const State state = advance(**sequence, 0, trace("short").at("ids"));
  const model::DraftRequest good{
      .token = state.token, .position = state.position, .hidden = state.hidden};
  const auto refuse = [&](model::DraftRequest request, ErrorCode code,
                          std::initializer_list<std::string_view> words) {
    EXPECT_TRUE(refused(atlas_pair().assistant->draft(**sequence, request), code, words));
  };
  EXPECT_TRUE(accepted(atlas_pair().assistant->draft(**sequence, good)));
  model::DraftRequest request = good;
  request.token = 8192;
  refuse(request, ErrorCode::malformed_text, {"8192"});
  request = good;
  request.position = 0;
  refuse(request, ErrorCode::invalid_argument, {"position 0"});
  request = good;
  request.hidden = request.hidden.first(128);
  refuse(request, ErrorCode::invalid_argument, {"128 values", "256 values"});
  request = good;
  request.position = 513;
  refuse(request, ErrorCode::invalid_argument, {"513"});

  GeometryPair other = geometry_pair("ordered");
  const auto target =
      model::Reference::open(other.target.config, other.target.types(), {.context = 64});
  ASSERT_TRUE(accepted(target));
  const auto open = [&] {
    return model::AssistantReference::open(other.assistant.config, other.assistant.types(),
                                           **target);
  };
  EXPECT_TRUE(accepted(open()));
  other.assistant.config.backbone_hidden = 256;
  EXPECT_TRUE(refused(open(), ErrorCode::bad_value, {"192", "256"}));
}

}  // namespace
}  // namespace tandem::test
