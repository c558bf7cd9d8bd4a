// Rounds with drafts: whatever is drafted, the tokens, the logits and the KV are those of plain
// rounds. Scripted drafts force acceptances and rejections where a test wants them.
#include <gtest/gtest.h>

#include "model/models.h"
#include "model/target_sequence.h"
#include "ops/draft/draft.h"
#include "support/compare.h"
#include "support/device.h"
#include "support/golden.h"
#include "support/refusal.h"

namespace tandem::test {
namespace {

using Ids = std::vector<uint32_t>;

constexpr uint32_t window = 8;
constexpr uint32_t context = 64;

const model::Capacity tiny_capacity = {
    .context = context, .input_bound = 5, .rounds_in_flight = 4, .drafts = 2, .scripted = true};

Ids some_ids(uint32_t count) {
  Ids ids(count);
  for (uint32_t i = 0; i < count; ++i) ids[i] = (i * 37 + 11) % tiny_model().config.vocabulary;
  return ids;
}

// What a generation gave, token by token.
struct Generated {
  Ids ids;
  std::vector<std::vector<float>> logits;  // the row that each token was chosen from
  std::vector<model::Round> rounds;
  ops::StopCode stop = ops::StopCode::none;
};

// One round at a time; `with_drafts` says of each round whether it drafts.
Generated run(model::Sequence& sequence, const Ids& prompt, const model::Request& request,
              const std::function<bool(size_t round)>& with_drafts, uint32_t position = 0) {
  Generated result;
  EXPECT_TRUE(accepted(sequence.prefill(position, prompt, request)));
  while (result.stop == ops::StopCode::none) {
    const auto round = sequence.harvest(true);
    EXPECT_TRUE(accepted(round));
    if (!round || !*round) break;
    const std::vector<float> rows = *sequence.logits();
    const size_t width = rows.size() / (*round)->rows;
    for (uint32_t i = 0; i < (*round)->count; ++i) {
      result.ids.push_back((*round)->targets[i]);
      result.logits.emplace_back(rows.begin() + i * width, rows.begin() + (i + 1) * width);
    }
    result.rounds.push_back(**round);
    result.stop = (*round)->stop;
    EXPECT_TRUE(accepted(sequence.decode(with_drafts(result.rounds.size()))));
  }
  return result;
}

bool always(size_t) { return true; }
bool never(size_t) { return false; }

// A script of the tokens of a plain run, wrong where `wrong` says.
Ids script_of(const Ids& prompt, const Generated& plain,
              const std::function<bool(uint32_t position)>& wrong) {
  Ids script(context + 1, ops::unscripted);
  for (uint32_t i = 0; i < plain.ids.size(); ++i) {
    const uint32_t position = static_cast<uint32_t>(prompt.size()) + i;
    const uint32_t right = plain.ids[i];
    script[position] = wrong(position) ? (right + 1) % tiny_model().config.vocabulary : right;
  }
  return script;
}

void expect_same(const Generated& drafted, const Generated& plain) {
  EXPECT_EQ(drafted.ids, plain.ids);
  EXPECT_EQ(drafted.stop, plain.stop);
  ASSERT_EQ(drafted.logits.size(), plain.logits.size());
  for (size_t i = 0; i < plain.logits.size(); ++i) {
    EXPECT_TRUE(same_bits(drafted.logits[i], plain.logits[i])) << "token " << i;
  }
}

void expect_same_kv(model::Sequence& a, model::Sequence& b, const spec::Config& config,
                    uint32_t end) {
  for (uint32_t layer = 0; layer < config.owning_layers(); ++layer) {
    const uint32_t begin = end > window ? end - window : 0;
    const auto in_a = a.kv(layer, begin, end), in_b = b.kv(layer, begin, end);
    ASSERT_TRUE(accepted(in_a) && accepted(in_b));
    EXPECT_TRUE(same_bits(in_a->keys, in_b->keys)) << "layer " << layer << ", " << end;
    EXPECT_TRUE(same_bits(in_a->values, in_b->values)) << "layer " << layer << ", " << end;
  }
}

struct Sampled {
  const char* name;
  SampleOptions sampling;
  std::vector<TokenBias> biases;
};

const Sampled samplings[] = {
    {"greedy", {.temperature = 0}, {}},
    {"greedy with a penalty", {.temperature = 0, .repetition_penalty = 1.6f}, {}},
    {"sampled", {.temperature = 1, .seed = 3}, {}},
    {"all options",
     {.temperature = 1.4f,
      .top_k = 40,
      .top_p = 0.9f,
      .min_p = 0.02f,
      .repetition_penalty = 1.3f,
      .penalty_window = 6,
      .seed = 4},
     {{5, -1e9f}, {9, 2}}},
};

class Mtp : public ::testing::TestWithParam<Place> {
 protected:
  model::Model& model() {
    // Never destroyed: the device that they need may go first.
    static auto& models = *new std::map<Place, std::unique_ptr<model::Model>>();
    auto& made = models[GetParam()];
    if (!made) made = make_tiny_mtp(GetParam(), tiny_capacity);
    return *made;
  }
};

INSTANTIATE_TEST_SUITE_P(Places, Mtp, ::testing::Values(Place::cpu, Place::gpu_f32, Place::gpu_f16),
                         [](const auto& place) { return name(place.param); });

TEST_P(Mtp, TokensAndLogitsAreThoseOfPlainRounds) {
  const auto plain = make_sequence(model()), drafted = make_sequence(model());
  for (const auto& [what, sampling, biases] : samplings) {
    SCOPED_TRACE(what);
    const Ids prompt = some_ids(11);
    const model::Request request{.max_tokens = 24, .sampling = sampling, .biases = biases};
    const Generated expected = run(*plain, prompt, request, never);
    // The assistant's own drafts, all right ones, all wrong ones, a mixture.
    ASSERT_TRUE(accepted(drafted->script(Ids(context + 1, ops::unscripted))));
    expect_same(run(*drafted, prompt, request, always), expected);
    const std::function<bool(uint32_t)> scripts[] = {
        [](uint32_t) { return false; }, [](uint32_t) { return true; },
        [](uint32_t position) { return position % 5 == 1 || position % 7 == 3; }};
    for (const auto& wrong : scripts) {
      ASSERT_TRUE(accepted(drafted->script(script_of(prompt, expected, wrong))));
      expect_same(run(*drafted, prompt, request, always), expected);
    }
    // Plain rounds between rounds with drafts.
    expect_same(run(*drafted, prompt, request, [](size_t round) { return round % 3 > 0; }),
                expected);
  }
}

TEST_P(Mtp, RightDraftsGiveThreeTokensARoundAndWrongOnesOne) {
  const auto sequence = make_sequence(model());
  const Ids prompt = some_ids(6);
  const Generated plain = run(*sequence, prompt, {.max_tokens = 31}, never);
  ASSERT_TRUE(accepted(sequence->script(script_of(prompt, plain, [](uint32_t) { return false; }))));
  const Generated all = run(*sequence, prompt, {.max_tokens = 31}, always);
  EXPECT_EQ(all.rounds.size(), 11u) << "prefill's token and ten rounds";
  for (size_t i = 1; i < all.rounds.size(); ++i) {
    EXPECT_EQ(all.rounds[i].rows, 3u);
    EXPECT_EQ(all.rounds[i].accepted, 2u);
  }
  ASSERT_TRUE(accepted(sequence->script(script_of(prompt, plain, [](uint32_t) { return true; }))));
  const Generated none = run(*sequence, prompt, {.max_tokens = 31}, always);
  EXPECT_EQ(none.rounds.size(), 31u);
}

TEST_P(Mtp, ARejectionAnywhereLeavesNothingBehind) {
  const auto plain = make_sequence(model()), drafted = make_sequence(model());
  const Ids prompt = some_ids(4);
  const model::Request request{.max_tokens = 24};
  const Generated expected = run(*plain, prompt, request, never);
  // Around the window and the borders of chunks of 5.
  for (uint32_t rejected = window - 2; rejected <= 2 * window; ++rejected) {
    SCOPED_TRACE(rejected);
    ASSERT_TRUE(accepted(drafted->script(
        script_of(prompt, expected, [&](uint32_t position) { return position == rejected; }))));
    expect_same(run(*drafted, prompt, request, always), expected);
    expect_same_kv(*drafted, *plain, model().config(),
                   static_cast<uint32_t>(prompt.size() + expected.ids.size()) - 1);
  }
}

TEST_P(Mtp, KvIsThatOfPlainRoundsAtEveryStep) {
  const auto plain = make_sequence(model()), drafted = make_sequence(model());
  const Ids prompt = some_ids(7);
  const model::Request request{.max_tokens = 30};
  const Generated expected = run(*plain, prompt, request, never);
  ASSERT_TRUE(accepted(drafted->script(
      script_of(prompt, expected, [](uint32_t position) { return position % 4 == 0; }))));
  ASSERT_TRUE(accepted(plain->prefill(0, prompt, request)));
  ASSERT_TRUE(accepted(drafted->prefill(0, prompt, request)));
  uint32_t emitted = 0;
  while (emitted < 24) {
    const auto round = drafted->harvest(true);
    ASSERT_TRUE(accepted(round) && *round);
    for (uint32_t i = 0; i < (*round)->count; ++i, ++emitted) {
      ASSERT_TRUE(accepted(plain->harvest(true)));
      ASSERT_TRUE(accepted(plain->decode()));
    }
    // The plain sequence has run one row more, the newest token's.
    expect_same_kv(*drafted, *plain, model().config(), (*round)->position + (*round)->count);
    ASSERT_TRUE(accepted(drafted->decode(true)));
  }
}

TEST_P(Mtp, StopsBudgetsAndTheContextEndRoundsExactly) {
  const auto plain = make_sequence(model()), drafted = make_sequence(model());
  const Ids prompt = some_ids(9);
  const Generated free = run(*plain, prompt, {.max_tokens = 1000}, never);
  EXPECT_EQ(free.stop, ops::StopCode::context);
  const auto right = [](uint32_t) { return false; };
  ASSERT_TRUE(accepted(drafted->script(script_of(prompt, free, right))));
  expect_same(run(*drafted, prompt, {.max_tokens = 1000}, always), free);
  for (uint32_t count : {1u, 2u, 3u, 4u, 5u, 6u, 17u}) {
    const Generated cut = run(*drafted, prompt, {.max_tokens = count}, always);
    EXPECT_EQ(cut.ids, Ids(free.ids.begin(), free.ids.begin() + count));
    EXPECT_EQ(cut.stop, ops::StopCode::length);
  }
  // A stop id at each place of a round, drafted and accepted.
  for (size_t at = 0; at < 8; ++at) {
    const model::Request request{.max_tokens = 30, .stop_ids = {free.ids[at]}};
    const Generated expected = run(*plain, prompt, request, never);
    expect_same(run(*drafted, prompt, request, always), expected);
    EXPECT_EQ(expected.stop, ops::StopCode::stop_id);
  }
  // A drafted stop id that the target rejects does not stop.
  uint32_t unused = 0;
  while (std::count(free.ids.begin(), free.ids.end(), unused) > 0) ++unused;
  Ids script = script_of(prompt, free, right);
  for (uint32_t position = 12; position < 30; position += 4) script[position] = unused;
  ASSERT_TRUE(accepted(drafted->script(script)));
  const model::Request request{.max_tokens = 25, .stop_ids = {unused}};
  expect_same(run(*drafted, prompt, request, always), run(*plain, prompt, request, never));
}

TEST_P(Mtp, DraftsAfterARejectionAreThoseAfterPlainRounds) {
  // One draft a round, so that what it was chosen from can be read.
  model::Capacity capacity = tiny_capacity;
  capacity.drafts = 1;
  const auto one = make_tiny_mtp(GetParam(), capacity);
  const auto plain = make_sequence(*one), drafted = make_sequence(*one);
  const Ids prompt = some_ids(5);
  const model::Request request{.max_tokens = 30};
  const Generated expected = run(*plain, prompt, request, never);
  const Ids own(context + 1, ops::unscripted);
  const auto unlike = [](uint32_t) { return true; };
  for (uint32_t rounds : {1u, 4u, 9u}) {
    const auto after = [&](model::Sequence& sequence, bool with_drafts) {
      EXPECT_TRUE(accepted(sequence.script(script_of(prompt, expected, unlike))));
      EXPECT_TRUE(accepted(sequence.prefill(0, prompt, request)));
      for (uint32_t i = 0; i < rounds; ++i) {
        EXPECT_TRUE(accepted(sequence.harvest(true)));
        EXPECT_TRUE(accepted(sequence.decode(with_drafts)));
      }
      EXPECT_TRUE(accepted(sequence.harvest(true)));
      EXPECT_TRUE(accepted(sequence.script(own)));
      EXPECT_TRUE(accepted(sequence.decode(true)));
      const auto round = sequence.harvest(true);
      EXPECT_TRUE(accepted(round) && *round);
      std::vector<float> scores;
      if (const auto* target = dynamic_cast<model::Target*>(one.get())) {
        const auto view = target->scratch().find("draft.scores")->second.view();
        const std::vector<std::byte> bytes = *target->device().read(view);
        scores.resize(bytes.size() / sizeof(float));
        std::memcpy(scores.data(), bytes.data(), bytes.size());
      }
      return std::pair((*round)->drafts, scores);
    };
    const auto [after_rejects, scores] = after(*drafted, true);
    const auto [after_plain, plain_scores] = after(*plain, false);
    EXPECT_EQ(after_rejects, after_plain) << rounds;
    EXPECT_TRUE(same_bits(scores, plain_scores)) << rounds;
  }
}

TEST_P(Mtp, RoundsRunAheadAndPastTheEnd) {
  const auto sequence = make_sequence(model());
  const Ids prompt = some_ids(10);
  const Generated plain = run(*sequence, prompt, {.max_tokens = 20}, never);
  ASSERT_TRUE(accepted(sequence->script(
      script_of(prompt, plain, [](uint32_t position) { return position % 6 == 2; }))));
  ASSERT_TRUE(accepted(sequence->prefill(0, prompt, {.max_tokens = 20})));
  Ids emitted;
  uint32_t silent = 0;
  for (int round = 0; round < 24; ++round) {
    while (sequence->in_flight() < 5) ASSERT_TRUE(accepted(sequence->decode(true)));
    const auto harvested = sequence->harvest(true);
    ASSERT_TRUE(accepted(harvested));
    if (!*harvested) {
      ++silent;
      continue;
    }
    const auto tokens = (*harvested)->tokens();
    emitted.insert(emitted.end(), tokens.begin(), tokens.end());
  }
  EXPECT_EQ(emitted, plain.ids);
  EXPECT_GT(silent, 8u) << "rounds past the end emit nothing";
}

TEST_P(Mtp, ATurnEndsAtEverySlotAndGoesOnAsAFreshOne) {
  const auto sequence = make_sequence(model()), fresh = make_sequence(model());
  const Ids next = some_ids(3);
  ASSERT_TRUE(accepted(sequence->script(Ids(context + 1, ops::unscripted))));
  for (uint32_t length = 4; length < 24; length += GetParam() == Place::cpu ? 5 : 1) {
    Ids ids = some_ids(length);
    ASSERT_TRUE(accepted(sequence->prefill(0, ids, {.max_tokens = 30})));
    for (int round = 0; round < 3; ++round) ASSERT_TRUE(accepted(sequence->decode(true)));
    for (int round = 0; round < 2; ++round) {
      const auto harvested = sequence->harvest(true);
      ASSERT_TRUE(accepted(harvested) && *harvested);
      ids.insert(ids.end(), (*harvested)->tokens().begin(), (*harvested)->tokens().end());
    }
    const uint32_t position = static_cast<uint32_t>(ids.size()) - 1;
    ASSERT_TRUE(sequence->keeps(position)) << length;
    ids.insert(ids.end(), next.begin(), next.end());
    const Ids turn(ids.begin() + position, ids.end());
    EXPECT_EQ(run(*sequence, turn, {.max_tokens = 6}, always, position).ids,
              run(*fresh, ids, {.max_tokens = 6}, never).ids)
        << length;
  }
}

TEST_P(Mtp, SequencesTakeTurns) {
  const auto a = make_sequence(model()), b = make_sequence(model());
  const Ids prompt_a = some_ids(7), prompt_b = some_ids(13);
  const Ids own(context + 1, ops::unscripted);
  ASSERT_TRUE(accepted(a->script(own)) && accepted(b->script(own)));
  const model::Request request{.max_tokens = 12, .sampling = {.temperature = 1, .seed = 9}};
  const Ids alone_a = run(*a, prompt_a, request, always).ids;
  const Ids alone_b = run(*b, prompt_b, request, always).ids;
  ASSERT_TRUE(accepted(a->prefill(0, prompt_a, request)));
  ASSERT_TRUE(accepted(b->prefill(0, prompt_b, request)));
  Ids mixed_a, mixed_b;
  for (int round = 0; round < 12; ++round) {
    for (const auto& [sequence, ids] : {std::pair(a.get(), &mixed_a), {b.get(), &mixed_b}}) {
      const auto harvested = sequence->harvest(true);
      ASSERT_TRUE(accepted(harvested));
      if (*harvested) {
        ids->insert(ids->end(), (*harvested)->tokens().begin(), (*harvested)->tokens().end());
      }
      ASSERT_TRUE(accepted(sequence->decode(true)));
    }
  }
  EXPECT_EQ(mixed_a, alone_a);
  EXPECT_EQ(mixed_b, alone_b);
}

TEST_P(Mtp, RefusesWhatItCannotDo) {
  const auto sequence = make_sequence(model());
  EXPECT_TRUE(refused(sequence->decode(true), ErrorCode::invalid_argument, {"prefill"}));
  EXPECT_TRUE(refused(sequence->script(Ids(context)), ErrorCode::invalid_argument, {"65"}));
  const auto plain = make_model(tiny_model(), GetParam(), {.context = context});
  const auto without = make_sequence(*plain);
  greedy(*without, some_ids(3), 2);
  EXPECT_TRUE(refused(without->decode(true), ErrorCode::invalid_argument, {"assistant"}));
  EXPECT_TRUE(refused(without->script(Ids(context + 1)), ErrorCode::invalid_argument));
}

TEST(MtpOpen, DraftsNeedAnAssistantThatFits) {
  const HashModel tiny = tiny_model();
  const model::Capacity capacity{.context = context, .drafts = 2};
  EXPECT_TRUE(refused(model::Reference::open(tiny.config, tiny.types(), capacity),
                      ErrorCode::invalid_argument, {"assistant"}));
  EXPECT_TRUE(
      refused(model::Target::open(test_device(), tiny.config, tiny.types(), {.capacity = capacity}),
              ErrorCode::invalid_argument, {"assistant"}));
  spec::AssistantConfig other = tiny_assistant().config;
  other.backbone_hidden = 128;
  EXPECT_TRUE(refused(model::Target::open(test_device(), tiny.config, tiny.types(),
                                          {.capacity = capacity, .assistant = other}),
                      ErrorCode::bad_value, {"64", "128"}));
  model::Capacity three = capacity;
  three.drafts = 3;
  EXPECT_TRUE(
      refused(model::Target::open(test_device(), tiny.config, tiny.types(),
                                  {.capacity = three, .assistant = tiny_assistant().config}),
              ErrorCode::invalid_argument, {"3 drafts"}));
}

TEST(MtpRoutes, APlainModelHasNoneOfTheAssistantsKernels) {
  const auto count = [](const model::Target& target) {
    const auto sequence = model::TargetSequence::make(const_cast<model::Target&>(target));
    EXPECT_TRUE(accepted(sequence));
    uint32_t drafting = 0;
    for (const char* method :
         {"prefill", "decode", "sampled decode", "score", "k2_round", "sampled k2_round"}) {
      for (const gpu::CommandList* list : (*sequence)->method(method)) {
        for (const gpu::DispatchInfo& dispatch : list->dispatches()) {
          for (const char* kernel : {"draft", "top_k", "gathered_linear", "scatter"}) {
            if (dispatch.kernel.starts_with(kernel)) ++drafting;
          }
        }
      }
    }
    return drafting;
  };
  const auto plain = make_target(tiny_model(), test_device(), {.capacity = {.context = context}});
  const auto mtp = make_tiny_mtp(Place::gpu_f16, {.context = context, .drafts = 2});
  EXPECT_EQ(count(*plain), 0u);
  EXPECT_GT(count(dynamic_cast<const model::Target&>(*mtp)), 0u);
}

// Drafting and verifying cost half the dispatches of a decode, in which residual steps are
// dispatches of their own, as they are to several rows.
TEST(MtpRoutes, ARoundTakesFewDispatchesMoreThanADecode) {
  const auto mtp = make_atlas_mtp(Place::gpu_f16, {.context = 512, .drafts = 2});
  const auto sequence =
      expect_value(model::TargetSequence::make(dynamic_cast<model::Target&>(*mtp)));
  const auto dispatches = [](const model::TargetSequence& of, std::string_view method) {
    uint32_t count = 0;
    for (const gpu::CommandList* list : of.method(method)) count += list->dispatch_count();
    return count;
  };
  const auto decode = [&](std::optional<bool> leave_steps) {
    const auto plain = make_target(atlas(), test_device(),
                                   {.capacity = {.context = 512}, .leave_steps = leave_steps});
    return dispatches(*expect_value(model::TargetSequence::make(*plain)), "decode");
  };
  EXPECT_LE(decode(true), 97u);
  EXPECT_LE(decode(false), 115u);
  // A plain round of a model with an assistant keeps ready what drafts begin with.
  EXPECT_LE(dispatches(*sequence, "decode"), decode({}) + 1);
  EXPECT_LE(2 * dispatches(*sequence, "k2_round"), 3 * (decode(false) + 1));
}

// The traces of transformers' own loop, round by round, in one submission each.
class MtpRounds : public ::testing::TestWithParam<std::tuple<Place, std::string>> {};

TEST_P(MtpRounds, AreThoseOfTheTraces) {
  const auto& [place, trace_name] = GetParam();
  static const Golden golden("mtp");
  const auto model = make_atlas_mtp(place, {.context = 512, .input_bound = 128, .drafts = 2});
  const auto sequence = make_sequence(*model);
  for (const nlohmann::json& trace : golden.index().at("traces")) {
    if (trace.at("name") != trace_name) continue;
    const nlohmann::json& clean = trace.at("clean");
    const nlohmann::json& rounds = clean.at("rounds");
    const Ids prompt = trace.at("ids"), generated = clean.at("generated");
    const Generated found = run(
        *sequence, prompt,
        {.max_tokens = static_cast<uint32_t>(generated.size()) + 8, .stop_ids = {1, 5}}, always);
    ASSERT_GE(found.ids.size(), generated.size());
    EXPECT_EQ(Ids(found.ids.begin(), found.ids.begin() + generated.size()), generated);
    ASSERT_GE(found.rounds.size(), rounds.size() + 1);
    uint32_t position = static_cast<uint32_t>(prompt.size());
    for (size_t i = 0; i < rounds.size(); ++i) {
      SCOPED_TRACE(i);
      const model::Round& round = found.rounds[i + 1];
      EXPECT_EQ(round.position, position);
      EXPECT_EQ(round.position, rounds[i].at("steps").at(0).at("position"));
      const Ids drafts(round.drafts.begin(), round.drafts.begin() + (round.rows - 1));
      EXPECT_EQ(drafts, rounds[i].at("drafts").get<Ids>());
      const Ids targets(round.targets.begin(), round.targets.begin() + round.rows);
      EXPECT_EQ(targets, rounds[i].at("target").get<Ids>());
      EXPECT_EQ(round.accepted, rounds[i].at("accepted"));
      position += round.count;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Traces, MtpRounds,
                         ::testing::Combine(::testing::Values(Place::cpu, Place::gpu_f32,
                                                              Place::gpu_f16),
                                            ::testing::Values("short", "profile", "long")),
                         [](const auto& param) {
                           return name(std::get<0>(param.param)) + "_" + std::get<1>(param.param);
                         });

// A prompt of any length: a text of the traces, over and over.
Ids long_prompt(uint32_t length) {
  static const Golden golden("mtp");
  Ids text;
  for (const nlohmann::json& trace : golden.index().at("traces")) {
    if (trace.at("name") == "long") text = trace.at("ids").get<Ids>();
  }
  Ids prompt(length);
  for (uint32_t i = 0; i < length; ++i) prompt[i] = text[i % text.size()];
  return prompt;
}

// What a round did, without the logits.
std::vector<uint32_t> decisions(const model::Round& round) {
  std::vector<uint32_t> all = {round.number, round.position, round.rows,
                               round.count,  round.accepted, static_cast<uint32_t>(round.stop)};
  all.insert(all.end(), round.drafts.begin(), round.drafts.end());
  all.insert(all.end(), round.targets.begin(), round.targets.end());
  return all;
}

class MtpContexts : public ::testing::TestWithParam<uint32_t> {};

TEST_P(MtpContexts, RoundsAreThoseOfTheReference) {
  const model::Capacity capacity = {
      .context = std::min(8192u, GetParam() + 64), .input_bound = 512, .drafts = 2};
  const Ids prompt = long_prompt(GetParam());
  const auto rounds = [&](Place place) {
    const auto model = make_atlas_mtp(place, capacity);
    return run(*make_sequence(*model), prompt, {.max_tokens = 16}, always).rounds;
  };
  const std::vector<model::Round> expected = rounds(Place::cpu), found = rounds(Place::gpu_f32);
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(decisions(found[i]), decisions(expected[i])) << "round " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Window, MtpContexts, ::testing::Values(127, 128, 129, 130, 131));
INSTANTIATE_TEST_SUITE_P(Long, MtpContexts, ::testing::Values(512, 1024, 4096, 8189));

// Plain rounds and rounds with drafts of the atlas, after each of the first `prompts` traces, by
// these of `samplings`.
void expect_plain_bits(ops::Activations activations, size_t prompts,
                       std::initializer_list<size_t> sampled, uint32_t tokens) {
  const auto model = make_atlas_mtp(
      Place::gpu_f16,
      {.context = 1024, .input_bound = 128, .activations = activations, .drafts = 2});
  const auto plain = make_sequence(*model), drafted = make_sequence(*model);
  static const Golden golden("mtp");
  const nlohmann::json& traces = golden.index().at("traces");
  for (size_t i = 0; i < std::min(prompts, traces.size()); ++i) {
    for (size_t index : sampled) {
      const auto& [what, sampling, biases] = samplings[index];
      SCOPED_TRACE(traces[i].at("name").get<std::string>() + ", " + what);
      const Ids prompt = traces[i].at("ids");
      const model::Request request{.max_tokens = tokens, .sampling = sampling, .biases = biases};
      expect_same(run(*drafted, prompt, request, always), run(*plain, prompt, request, never));
    }
  }
}

TEST(MtpAtlas, Int8LogitsHaveTheBitsOfPlainRounds) {
  expect_plain_bits(ops::Activations::int8, 1, {0}, 24);
}
TEST(MtpAtlasLong, LogitsOf512TokensHaveTheBitsOfPlainRounds) {
  expect_plain_bits(ops::Activations::f32, SIZE_MAX, {0, 3}, 512);
}
TEST(MtpAtlasLong, Int8LogitsOf512TokensHaveTheBitsOfPlainRounds) {
  expect_plain_bits(ops::Activations::int8, SIZE_MAX, {0, 3}, 512);
}

}  // namespace
}  // namespace tandem::test
