// Sessions: conversations, reuse of prefixes, reset, stop strings, aborts, sampling, turns of
// several sessions.
#include <gtest/gtest.h>

#include <numeric>
#include <thread>

#include "engine/engines.h"
#include "support/device.h"
#include "support/refusal.h"

namespace tandem::test {
namespace {

using Ids = std::vector<uint32_t>;

Session new_session(Engine& engine = gpu_engine()) { return expect_value(engine.session()); }

Ids user_says(const Session& session, const std::string& text) {
  const Message message{"user", text};
  return expect_value(session.next_prompt({&message, 1}));
}

Generation run(Session& session, const Ids& prompt, const GenerateOptions& options = {}) {
  return expect_value(session.generate(prompt, options));
}

// All but the times.
void expect_same(const Generation& a, const Generation& b) {
  EXPECT_EQ(a.ids, b.ids);
  EXPECT_EQ(a.text, b.text);
  EXPECT_EQ(a.stop, b.stop);
  EXPECT_EQ(a.stats.prompt_tokens, b.stats.prompt_tokens);
  EXPECT_EQ(a.stats.generated_tokens, b.stats.generated_tokens);
  EXPECT_EQ(a.stats.rounds, b.stats.rounds);
}

TEST(Session, AConversationIsAFreshRunOverItsTokens) {
  Session chat = new_session();
  // Turns that end by a stop id, by length and by a stop string.
  const std::pair<const char*, GenerateOptions> turns[] = {
      {"What is the capital of France?", {}},
      {"What is the capital of Italy?", {.max_tokens = 3}},
      {"What is the currency of Japan?", {.stop_strings = {" is"}}},
      {"What is the capital of Spain?", {}},
      {"What is the capital of Peru?", {}},
  };
  for (const auto& [text, options] : turns) {
    const size_t before = chat.ids().size();
    const Ids prompt = user_says(chat, text);
    ASSERT_TRUE(std::equal(chat.ids().begin(), chat.ids().end(), prompt.begin()));
    const Generation answer = run(chat, prompt, options);
    EXPECT_EQ(answer.stats.reused_tokens, before == 0 ? 0 : before - 1) << text;
    Session fresh = new_session();
    expect_same(answer, run(fresh, prompt, options));
    EXPECT_EQ(chat.ids(), fresh.ids());
  }
}

TEST(Session, PolledInStepsItIsAsWhenItWaits) {
  Session waiting = new_session();
  const Ids prompt = user_says(waiting, "What is the capital of France?");
  const Generation expected = run(waiting, prompt);
  Session polled = expect_value(gpu_engine().begin_session());
  while (!expect_value(polled.prepare())) std::this_thread::yield();
  expect_success(polled.start(prompt, {}));
  std::string text;
  while (polled.running()) text += expect_value(polled.poll()).value_or("");
  EXPECT_EQ(text, expected.text);
  expect_same(polled.generation(), expected);
  EXPECT_TRUE(refused(polled.poll(), ErrorCode::invalid_argument));
}

TEST(Session, ATurnIsClosedOnce) {
  Session chat = new_session();
  EXPECT_EQ(user_says(chat, "Hi"), question(gpu_engine(), "Hi"));
  const Message both[] = {{"user", "What is the capital of France?"},
                          {"model", "The capital of France is Paris."},
                          {"user", "And then?"}};
  run(chat, user_says(chat, both[0].content));
  EXPECT_EQ(user_says(chat, both[2].content), expect_value(gpu_engine().encode_chat(both)))
      << "the answer ended its turn itself";
  run(chat, question(gpu_engine(), both[0].content), {.max_tokens = 7});
  ASSERT_NE(chat.ids().back(), 5u);
  EXPECT_EQ(user_says(chat, both[2].content), expect_value(gpu_engine().encode_chat(both)))
      << "the turn's end was added";
}

TEST(Session, AStopIdThatIsNotTheTurnsEndIsNotPartOfTheConversation) {
  Session chat = new_session();
  const Ids prompt = question(gpu_engine(), "What is the capital of France?");
  // Token 1, <eos>, is forced.
  const Generation answer = run(chat, prompt, {.biases = {{1, 1e9f}}});
  ASSERT_EQ(answer.ids, Ids{1});
  EXPECT_EQ(answer.text, "");
  const Ids next = user_says(chat, "Hi");
  EXPECT_EQ(std::count(next.begin(), next.end(), 1u), 0);
  EXPECT_EQ(next[prompt.size()], 5u);
}

TEST(Session, PrefixesAreReusedAsFarAsTheyAgree) {
  Session session = new_session();
  Ids prompt(40);
  std::iota(prompt.begin(), prompt.end(), 300);
  const GenerateOptions four{.max_tokens = 4, .ignore_eos = true};
  const auto expect_reused = [&](const Ids& ids, uint32_t reused) {
    const Generation generation = run(session, ids, four);
    EXPECT_EQ(generation.stats.reused_tokens, reused);
    Session fresh = new_session();
    expect_same(generation, run(fresh, ids, four));
  };
  expect_reused(prompt, 0);
  expect_reused(prompt, 39);
  Ids differs = prompt;
  differs[25] = 9;
  expect_reused(differs, 25);
  differs.resize(26);
  expect_reused(differs, 25);
  differs.resize(10);
  expect_reused(differs, 9);
  prompt[0] = 9;
  expect_reused(prompt, 0);
}

TEST(Session, WhatTheRingHasLostIsRunAgain) {
  Session session = new_session();
  Ids prompt(240);
  std::iota(prompt.begin(), prompt.end(), 300);
  const GenerateOptions few{.max_tokens = 3, .ignore_eos = true};
  run(session, prompt, few);
  prompt.resize(20);  // 240 positions in a ring of 193 slots: what these rows look back at is gone
  const Generation again = run(session, prompt, few);
  EXPECT_EQ(again.stats.reused_tokens, 0u);
  Session fresh = new_session();
  expect_same(again, run(fresh, prompt, few));
}

TEST(Session, AResetSessionIsANewOne) {
  const Ids a = question(gpu_engine(), "What is the capital of Italy?");
  const Ids b = question(gpu_engine(), "What is the capital of Italy and of Spain?");
  Session session = new_session();
  run(session, a);
  session.reset();
  EXPECT_TRUE(session.ids().empty());
  EXPECT_FALSE(session.running());
  EXPECT_TRUE(session.generation().ids.empty());
  const Generation after = run(session, b);
  EXPECT_EQ(after.stats.reused_tokens, 0u);
  Engine other = expect_value(Engine::open(atlas_folder, small_gpu()));
  Session fresh = new_session(other);
  expect_same(after, run(fresh, b));
}

TEST(Session, StopStringsCutTextIdsAndCountersAlike) {
  const Generation free = *generate(gpu_engine(), capital_of_france());
  ASSERT_EQ(free.text, "The capital of France is Paris.");
  for (const auto& [stop, before] :
       {std::pair<std::string, std::string>{" Paris", "The capital of France is"},
        {"The", ""},
        {"ance is P", "The capital of Fr"},
        {"e", "Th"},
        {"Paris.", "The capital of France is "}}) {
    Session session = new_session();
    std::string streamed;
    const Generation cut = expect_value(session.generate(
        capital_of_france(), {.stop_strings = {"never", stop}}, [&](std::string_view piece) {
          streamed += piece;
          return true;
        }));
    EXPECT_EQ(cut.stop, StopReason::stop_string) << stop;
    EXPECT_EQ(cut.text, before);
    EXPECT_EQ(streamed, before);
    EXPECT_EQ(cut.ids, Ids(free.ids.begin(), free.ids.begin() + cut.ids.size()));
    EXPECT_EQ(cut.stats.generated_tokens, cut.ids.size());
    EXPECT_EQ(session.ids().size(), capital_of_france().size() + cut.ids.size());
    // No token more than the stop string needs.
    const auto shorter = generate(gpu_engine(), capital_of_france(),
                                  {.max_tokens = static_cast<uint32_t>(cut.ids.size()) - 1});
    EXPECT_TRUE(!shorter || shorter->text.find(stop) == std::string::npos) << stop;
  }
  const Generation uncut =
      *generate(gpu_engine(), capital_of_france(), {.stop_strings = {"Paris!"}});
  expect_same(uncut, free);
}

TEST(Session, AbortsLeaveTheNextGenerationAsFresh) {
  const Generation expected = *generate(gpu_engine(), capital_of_france());
  Session session = new_session();
  for (const size_t tokens : {0, 1, 4, 0}) {
    ASSERT_TRUE(session.start(capital_of_france(), {.max_tokens = 50, .ignore_eos = true}));
    for (size_t i = 0; i < tokens; ++i) ASSERT_TRUE(session.step());
    session.abort();
    session.abort();
    EXPECT_FALSE(session.running());
    EXPECT_FALSE(session.step());
    const Generation aborted = session.generation();
    EXPECT_EQ(aborted.stop, StopReason::aborted);
    EXPECT_EQ(aborted.ids, Ids(expected.ids.begin(), expected.ids.begin() + tokens));
    EXPECT_EQ(aborted.stats.generated_tokens, tokens);
    EXPECT_EQ(run(session, capital_of_france()).ids, expected.ids) << tokens;
  }
  // A start ends what runs.
  ASSERT_TRUE(session.start(capital_of_france(), {}));
  ASSERT_TRUE(session.step());
  expect_same(run(session, capital_of_france()), expected);
}

TEST(Session, AnAbortGivesOutTheTextThatWasHeldBack) {
  Session session = new_session();
  ASSERT_TRUE(session.start(capital_of_france(), {.stop_strings = {"The capital of Rome"}}));
  std::string text;
  for (int i = 0; i < 3; ++i) text += *session.step();
  EXPECT_EQ(text, "");
  text += session.abort();
  EXPECT_EQ(text, session.generation().text);
  EXPECT_EQ(text.find("The capital"), 0u) << text;
}

TEST(Session, SessionsTakeTurnsStepByStep) {
  const Ids prompts[] = {question(gpu_engine(), "What is the capital of Kenya?"),
                         question(gpu_engine(), "Tell me about France.")};
  const GenerateOptions options[] = {{.max_tokens = 12, .ignore_eos = true},
                                     {.max_tokens = 12,
                                      .ignore_eos = true,
                                      .sampling = SampleOptions{.temperature = 1.5, .seed = 3}}};
  Session alone[] = {new_session(), new_session()};
  Session mixed[] = {new_session(), new_session()};
  for (int turn = 0; turn < 2; ++turn) {
    Generation expected[2];
    for (int i : {0, 1}) {
      expected[i] =
          run(alone[i], turn == 0 ? prompts[i] : user_says(alone[i], "Go on."), options[i]);
      ASSERT_TRUE(
          mixed[i].start(turn == 0 ? prompts[i] : user_says(mixed[i], "Go on."), options[i]));
    }
    while (mixed[0].running() || mixed[1].running()) {
      for (Session& session : mixed) {
        ASSERT_TRUE(!session.running() || session.step());
      }
    }
    for (int i : {0, 1}) expect_same(mixed[i].generation(), expected[i]);
  }
}

TEST(Session, ASeedGivesOneText) {
  const Ids prompt = question(gpu_engine(), "Tell me about Kenya.");
  const auto with_seed = [&](Engine& engine, uint64_t seed) {
    return generate(engine, prompt,
                    {.max_tokens = 16,
                     .ignore_eos = true,
                     .sampling = SampleOptions{.temperature = 4, .top_k = 40, .seed = seed}})
        ->ids;
  };
  const Ids seven = with_seed(gpu_engine(), 7);
  EXPECT_EQ(with_seed(gpu_engine(), 7), seven);
  EXPECT_NE(with_seed(gpu_engine(), 8), seven);
  EngineOptions options = small_gpu();
  options.rounds_in_flight = 1;
  Engine other = expect_value(Engine::open(atlas_folder, options));
  EXPECT_EQ(with_seed(other, 7), seven);
}

TEST(Session, BiasesBanAndForceTokens) {
  const Generation free = *generate(gpu_engine(), capital_of_france());
  const Generation banned =
      *generate(gpu_engine(), capital_of_france(), {.biases = {{free.ids[0], -1e9f}}});
  EXPECT_EQ(std::count(banned.ids.begin(), banned.ids.end(), free.ids[0]), 0);
  const Generation forced = *generate(
      gpu_engine(), capital_of_france(),
      {.max_tokens = 5, .sampling = SampleOptions{.temperature = 1}, .biases = {{300, 1e9f}}});
  EXPECT_EQ(forced.ids, Ids(5, 300));
}

TEST(Session, RefusedArgumentsLoseNothing) {
  Session session = new_session();
  const Generation first = run(session, capital_of_france());
  const Ids timeline = session.ids();
  const auto refuses = [&](const Ids& prompt, const GenerateOptions& options, ErrorCode code) {
    EXPECT_TRUE(refused(session.generate(prompt, options), code));
    EXPECT_EQ(session.ids(), timeline);
    expect_same(session.generation(), first);
  };
  refuses(Ids(257, 300), {}, ErrorCode::context_exceeded);
  refuses({}, {}, ErrorCode::invalid_argument);
  refuses({2, 8192}, {}, ErrorCode::malformed_text);
  const Ids prompt = user_says(session, "Hi");
  refuses(prompt, {.max_tokens = 0}, ErrorCode::invalid_argument);
  refuses(prompt, {.sampling = SampleOptions{.temperature = -1}}, ErrorCode::invalid_argument);
  refuses(prompt, {.sampling = SampleOptions{.top_p = 0}}, ErrorCode::invalid_argument);
  refuses(prompt, {.biases = {{8192, 1}}}, ErrorCode::invalid_argument);
  refuses(prompt, {.biases = {{3, 1}, {3, 2}}}, ErrorCode::invalid_argument);
  refuses(prompt, {.stop_strings = {""}}, ErrorCode::invalid_argument);
  refuses(prompt, {.stop_strings = {"\xFF"}}, ErrorCode::malformed_text);
  EXPECT_GT(run(session, prompt).stats.reused_tokens, 0u);
}

TEST(Session, TheContextsEndStopsAndAResetGoesOn) {
  Session session = new_session();
  Ids prompt(250);
  std::iota(prompt.begin(), prompt.end(), 300);
  const Generation full = run(session, prompt, {.max_tokens = 100, .ignore_eos = true});
  EXPECT_EQ(full.stop, StopReason::context);
  EXPECT_EQ(full.ids.size(), 7u);
  EXPECT_TRUE(refused(session.generate(user_says(session, "Hi"), {}), ErrorCode::context_exceeded,
                      {"256"}));
  session.reset();
  EXPECT_EQ(run(session, capital_of_france()).text, "The capital of France is Paris.");
}

TEST(SessionOnCpu, ChatsAndSamplesAsOnTheGpu) {
  Session session = new_session(cpu_engine());
  EXPECT_EQ(run(session, user_says(session, "What is the capital of France?")).text,
            "The capital of France is Paris.");
  const Ids prompt = user_says(session, "What is the capital of Italy?");
  const Generation answer = run(session, prompt);
  EXPECT_EQ(answer.stats.reused_tokens, 23u);
  Session fresh = new_session(cpu_engine());
  expect_same(answer, run(fresh, prompt));
  const GenerateOptions sampled{.max_tokens = 8,
                                .sampling = SampleOptions{.temperature = 0.8f, .seed = 1}};
  EXPECT_EQ(run(session, prompt, sampled).ids, run(fresh, prompt, sampled).ids);
}

}  // namespace
}  // namespace tandem::test
