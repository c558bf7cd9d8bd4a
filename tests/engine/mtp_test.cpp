// Generations with drafts: the tokens, texts and timelines of plain ones, whatever ends them.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <numeric>

#include "engine/engines.h"
#include "support/device.h"
#include "support/golden.h"
#include "support/refusal.h"

namespace tandem::test {
namespace {

using Ids = std::vector<uint32_t>;
using Rounds = std::vector<RoundInfo>;

// With its rounds, whose sums its counters must be.
struct Generated {
  Generation generation;
  Rounds rounds;
};

void expect_counters(const Generated& run) {
  const GenerateStats& stats = run.generation.stats;
  ASSERT_EQ(run.rounds.size(), stats.rounds);
  uint32_t position = stats.prompt_tokens - 1;
  std::array<uint32_t, 2> drafted = {}, accepted = {};
  for (const RoundInfo& round : run.rounds) {
    EXPECT_EQ(round.position, position);
    EXPECT_EQ(round.targets.size(), round.drafts.size() + 1);
    position += round.accepted + 1;
    for (size_t place = 0; place < round.drafts.size(); ++place) {
      ++drafted[place];
      if (place < round.accepted) ++accepted[place];
      EXPECT_TRUE(place >= round.accepted || round.drafts[place] == round.targets[place]);
    }
  }
  EXPECT_EQ(stats.drafted, drafted);
  EXPECT_EQ(stats.accepted, accepted);
  EXPECT_LE(drafted[0] + drafted[1], 2 * stats.rounds);
  EXPECT_EQ(stats.generated_tokens, run.generation.ids.size());
  EXPECT_EQ(stats.generated_tokens, stats.rounds + accepted[0] + accepted[1] - stats.discarded);
}

Generated run(Session& session, const Ids& prompt, GenerateOptions options, Mtp mtp) {
  Generated result;
  options.mtp = mtp;
  options.on_round = [&](const RoundInfo& round) { result.rounds.push_back(round); };
  result.generation = expect_value(session.generate(prompt, options));
  expect_counters(result);
  return result;
}

// All but the rounds.
void expect_same(const Generation& drafted, const Generation& plain) {
  EXPECT_EQ(drafted.ids, plain.ids);
  EXPECT_EQ(drafted.text, plain.text);
  EXPECT_EQ(drafted.stop, plain.stop);
  EXPECT_EQ(drafted.stats.reused_tokens, plain.stats.reused_tokens);
  EXPECT_EQ(plain.stats.drafted[0], 0u);
}

const GenerateOptions every_option{.max_tokens = 12,
                                   .ignore_eos = true,
                                   .sampling = SampleOptions{.temperature = 1.3f,
                                                             .top_k = 50,
                                                             .top_p = 0.95f,
                                                             .min_p = 0.01f,
                                                             .repetition_penalty = 1.2f,
                                                             .penalty_window = 12,
                                                             .seed = 5},
                                   .biases = {{300, -1e9f}, {589, 1}}};

class MtpSession : public ::testing::TestWithParam<Place> {
 protected:
  Engine& engine() { return mtp_engine(GetParam()); }
  Session session() { return expect_value(engine().session()); }
  Ids ask(const std::string& text) { return question(engine(), text); }
  Ids says(const Session& session, const std::string& text) {
    const Message message{"user", text};
    return expect_value(session.next_prompt({&message, 1}));
  }
};

INSTANTIATE_TEST_SUITE_P(OnGpu, MtpSession, ::testing::Values(Place::gpu));
INSTANTIATE_TEST_SUITE_P(OnCpu, MtpSession, ::testing::Values(Place::cpu));

TEST_P(MtpSession, TokensAreThoseOfPlainRounds) {
  Session plain = session(), drafted = session();
  const std::pair<Ids, GenerateOptions> cases[] = {
      {ask("Which languages do people speak in Chile?"), {.max_tokens = 24}},
      {ask("Tell me about France."), {.max_tokens = 24}},
      {expect_value(engine().encode("The people of the island")), {.max_tokens = 24}},
      {ask("Tell me about France."), every_option},
  };
  for (const auto& [prompt, options] : cases) {
    plain.reset(), drafted.reset();
    const Generated expected = run(plain, prompt, options, Mtp::off);
    const Generated found = run(drafted, prompt, options, Mtp::on);
    expect_same(found.generation, expected.generation);
    EXPECT_GT(found.generation.stats.accepted[0], 0u) << "or nothing was shown";
  }
}

TEST_P(MtpSession, AConversationIsThatOfPlainRounds) {
  Session plain = session(), drafted = session();
  const std::pair<const char*, GenerateOptions> turns[] = {
      {"What is the capital of France?", {}},
      {"What is the currency of Japan?", {.stop_strings = {" is"}}},
      {"Tell me about Peru.", {.max_tokens = 8}},
      {"What is the capital of Spain?",
       {.sampling = SampleOptions{.temperature = 1.5f, .seed = 2}}},
      {"What is the capital of Italy?", {}},
  };
  for (const auto& [text, options] : turns) {
    SCOPED_TRACE(text);
    const Ids prompt = says(plain, text);
    ASSERT_EQ(says(drafted, text), prompt);
    const Generated expected = run(plain, prompt, options, Mtp::off);
    expect_same(run(drafted, prompt, options, Mtp::on).generation, expected.generation);
    EXPECT_EQ(drafted.ids(), plain.ids());
  }
}

TEST_P(MtpSession, AStopStringCutsAnAcceptedBlock) {
  Session plain = session(), drafted = session();
  const Ids prompt = ask("Tell me about France.");
  const Generated free = run(drafted, prompt, {.max_tokens = 16}, Mtp::on);
  size_t begin = 0;
  bool cut = false;
  for (const RoundInfo& round : free.rounds) {
    const size_t first = std::exchange(begin, begin + round.accepted + 1);
    if (round.accepted == 0 || cut) continue;
    // What the block's first token completes: the others are accepted, and behind the stop.
    plain.reset(), drafted.reset();
    const std::string text =
        run(plain, prompt, {.max_tokens = static_cast<uint32_t>(first) + 1}, Mtp::off)
            .generation.text;
    const std::string stop = text.substr(text.size() < 10 ? 0 : text.size() - 10);
    if (text.find(stop) + stop.size() != text.size()) continue;
    SCOPED_TRACE(stop);
    const GenerateOptions options{.max_tokens = 60, .stop_strings = {stop}};
    plain.reset();
    const Generated expected = run(plain, prompt, options, Mtp::off);
    const Generated found = run(drafted, prompt, options, Mtp::on);
    expect_same(found.generation, expected.generation);
    EXPECT_EQ(found.generation.ids.size(), first + 1);
    EXPECT_EQ(found.generation.stop, StopReason::stop_string);
    EXPECT_EQ(found.generation.stats.discarded, round.accepted);
    EXPECT_EQ(drafted.ids(), plain.ids());
    const Ids next = says(plain, "What is the capital of Peru?");
    expect_same(run(drafted, next, {.max_tokens = 6}, Mtp::on).generation,
                run(plain, next, {.max_tokens = 6}, Mtp::off).generation);
    cut = true;
  }
  EXPECT_TRUE(cut);
}

TEST_P(MtpSession, MaxTokensIsExact) {
  Session drafted = session();
  const Ids prompt = ask("Tell me about France.");
  const Ids free = run(drafted, prompt, {.max_tokens = 8}, Mtp::off).generation.ids;
  for (uint32_t count : {1u, 2u, 3u, 4u}) {
    drafted.reset();
    const Generated cut = run(drafted, prompt, {.max_tokens = count}, Mtp::on);
    EXPECT_EQ(cut.generation.ids, Ids(free.begin(), free.begin() + count));
    EXPECT_EQ(cut.generation.stop, StopReason::length);
    EXPECT_EQ(cut.generation.stats.discarded, 0u);
  }
}

TEST_P(MtpSession, AnAbortLeavesTheNextGenerationAsFresh) {
  Session aborted = session(), fresh = session();
  const Ids prompt = ask("Tell me about France."), other = ask("What is the capital of Peru?");
  const Generation expected = run(fresh, prompt, {.max_tokens = 12}, Mtp::off).generation;
  fresh.reset();
  const Ids expected_other = run(fresh, other, {}, Mtp::off).generation.ids;
  for (const int steps : {0, 2}) {
    ASSERT_TRUE(accepted(aborted.start(prompt, {.max_tokens = 12, .mtp = Mtp::on})));
    for (int i = 0; i < steps; ++i) ASSERT_TRUE(accepted(aborted.step()));
    aborted.abort();
    const Ids ids = aborted.generation().ids;
    EXPECT_EQ(ids, Ids(expected.ids.begin(), expected.ids.begin() + ids.size()));
    EXPECT_EQ(aborted.ids().size(), prompt.size() + ids.size());
    EXPECT_EQ(run(aborted, other, {}, Mtp::on).generation.ids, expected_other) << steps;
    EXPECT_EQ(run(aborted, prompt, {.max_tokens = 12}, Mtp::on).generation.ids, expected.ids);
  }
}

// What a session did before a reset shows nowhere: not in the tokens, nor in a round, nor a
// counter.
TEST_P(MtpSession, AResetSessionIsANewOne) {
  Session used = session(), fresh = session();
  run(used, ask("Tell me about France."), every_option, Mtp::on);
  used.reset();
  const Ids prompt = ask("What is the capital of Peru and of Chile?");
  const Generated again = run(used, prompt, every_option, Mtp::on);
  const Generated expected = run(fresh, prompt, every_option, Mtp::on);
  EXPECT_EQ(again.generation.ids, expected.generation.ids);
  EXPECT_EQ(again.generation.text, expected.generation.text);
  const GenerateStats &a = again.generation.stats, &b = expected.generation.stats;
  EXPECT_EQ(a.reused_tokens, 0u);
  EXPECT_EQ(a.drafted, b.drafted);
  EXPECT_EQ(a.accepted, b.accepted);
  EXPECT_EQ(a.discarded, b.discarded);
  ASSERT_EQ(again.rounds.size(), expected.rounds.size());
  for (size_t i = 0; i < expected.rounds.size(); ++i) {
    EXPECT_EQ(again.rounds[i].drafts, expected.rounds[i].drafts);
    EXPECT_EQ(again.rounds[i].targets, expected.rounds[i].targets);
  }
}

// Long enough for both ways to be measured.
TEST_P(MtpSession, AutomaticChangesNoTokens) {
  Session plain = session(), automatic = session();
  const Ids prompt = expect_value(engine().encode("The people of the island"));
  const GenerateOptions options{.max_tokens = 72, .ignore_eos = true};
  const Generated expected = run(plain, prompt, options, Mtp::off);
  const Generated found = run(automatic, prompt, options, Mtp::automatic);
  expect_same(found.generation, expected.generation);
  const auto plain_round = [](const RoundInfo& round) { return round.drafts.empty(); };
  EXPECT_TRUE(std::none_of(found.rounds.begin() + 1, found.rounds.begin() + 10, plain_round));
  EXPECT_GE(std::count_if(found.rounds.begin(), found.rounds.end() - 1, plain_round), 28)
      << "prefill's round, and the plain rounds of the window that was measured";
}

TEST(MtpEngine, NeedsAnAssistant) {
  Session session = expect_value(gpu_engine().session());
  EXPECT_EQ(gpu_engine().info().drafts, 0u);
  EXPECT_TRUE(refused(session.generate(capital_of_france(), {.mtp = Mtp::on}),
                      ErrorCode::invalid_argument, {"assistant"}));
  const Generated found = run(session, capital_of_france(), {}, Mtp::automatic);
  EXPECT_EQ(found.generation.text, "The capital of France is Paris.");
  EXPECT_EQ(found.generation.stats.drafted[0], 0u);
  EngineOptions three = small_gpu();
  three.drafts = 3;
  EXPECT_TRUE(refused(Engine::open(atlas_folder, three), ErrorCode::invalid_argument, {"3"}));
}

TEST(MtpEngineOnCpu, OneDraftARound) {
  Engine engine =
      expect_value(Engine::open(atlas_folder, {.place = Place::cpu, .context = 64, .drafts = 1}));
  EXPECT_EQ(engine.info().drafts, 1u);
  Session plain = expect_value(engine.session()), drafted = expect_value(engine.session());
  const Ids prompt = question(engine, "Tell me about France.");
  const Generated found = run(drafted, prompt, {.max_tokens = 10}, Mtp::on);
  expect_same(found.generation, run(plain, prompt, {.max_tokens = 10}, Mtp::off).generation);
  EXPECT_GT(found.generation.stats.accepted[0], 0u);
  EXPECT_EQ(found.generation.stats.drafted[1], 0u);
}

// Held-out questions of the atlas: the GPU's rounds are the CPU's, draft for draft.
void compare_rounds(size_t count) {
  const nlohmann::json golden = nlohmann::json::parse(
      read_text(std::string(TANDEM_SOURCE_DIR) + "/tests/golden/heldout_qa.json"));
  Session on_gpu = expect_value(mtp_engine(Place::gpu).session());
  Session on_cpu = expect_value(mtp_engine(Place::cpu).session());
  std::array<uint32_t, 2> drafted = {}, accepted = {};
  for (size_t i = 0; i < count; ++i) {
    const std::string text = golden.at("items").at(i).at("q");
    SCOPED_TRACE(text);
    const Ids prompt = question(mtp_engine(Place::gpu), text);
    const Generated gpu = run(on_gpu, prompt, {.max_tokens = 128}, Mtp::on);
    const Generated cpu = run(on_cpu, prompt, {.max_tokens = 128}, Mtp::on);
    EXPECT_EQ(gpu.generation.ids, cpu.generation.ids);
    ASSERT_EQ(gpu.rounds.size(), cpu.rounds.size());
    for (size_t r = 0; r < gpu.rounds.size(); ++r) {
      EXPECT_EQ(gpu.rounds[r].drafts, cpu.rounds[r].drafts) << r;
      EXPECT_EQ(gpu.rounds[r].accepted, cpu.rounds[r].accepted) << r;
    }
    for (size_t place = 0; place < drafted.size(); ++place) {
      drafted[place] += gpu.generation.stats.drafted[place];
      accepted[place] += gpu.generation.stats.accepted[place];
    }
  }
  std::printf("%u of %u first drafts accepted, %u of %u second ones\n", accepted[0], drafted[0],
              accepted[1], drafted[1]);
  EXPECT_GT(2 * accepted[0], drafted[0]) << "the assistant was trained on such questions";
}

TEST(MtpHeldOut, OneQuestion) { compare_rounds(1); }

TEST(MtpHeldOutLong, AllTwoHundredQuestions) { compare_rounds(200); }

TEST(MtpLong, FiveHundredTokensAcrossTheWindow) {
  EngineOptions options = small_gpu();
  options.drafts = 2;
  options.context = 640;
  Engine engine = expect_value(Engine::open(atlas_folder, options));
  Session plain = expect_value(engine.session()), drafted = expect_value(engine.session());
  const Ids prompt = question(engine, "Tell me about France.");
  const GenerateOptions many{.max_tokens = 512, .ignore_eos = true};
  const Generated found = run(drafted, prompt, many, Mtp::on);
  expect_same(found.generation, run(plain, prompt, many, Mtp::off).generation);
  EXPECT_EQ(found.generation.ids.size(), 512u);
  EXPECT_LT(found.generation.stats.rounds, 512u);
}

}  // namespace
}  // namespace tandem::test
