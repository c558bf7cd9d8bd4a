// tandem chat over a pipe, and the sampling options that it shares with generate.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/program.h"
#include "support/checkpoint.h"
#include "support/golden.h"

namespace tandem::test {
namespace {

// Runs `tandem chat` on the CPU with these lines as its input.
Outcome chat(const std::string& lines, const std::string& options = "") {
  const TemporaryFolder folder;
  const std::string input = (folder.path() / "input").string();
  std::ofstream(input) << lines;
  return tandem("chat '" + atlas_folder + "' --device cpu --context 128 " + options + " <'" +
                input + "'");
}

TEST(CliChat, RemembersTheConversationAndSavesIt) {
  const TemporaryFolder folder;
  const std::string saved = (folder.path() / "saved.json").string();
  const Outcome outcome = chat("What is the capital of France?\n\nAnd of Italy?\n/stats\n/save " +
                               saved + "\n/reset\n/stats\n/quit\nnever read\n");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "The capital of France is Paris.\nThe capital of Italy is Rome.\n")
      << "answers only, and no colours";
  EXPECT_TRUE(contains(outcome.err,
                       "46 of 128 positions; the last prompt had 37 tokens, 23 of them "
                       "reused"))
      << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "no answer yet")) << outcome.err;
  const nlohmann::json expected = {
      {{"role", "user"}, {"content", "What is the capital of France?"}},
      {{"role", "model"}, {"content", "The capital of France is Paris."}},
      {{"role", "user"}, {"content", "And of Italy?"}},
      {{"role", "model"}, {"content", "The capital of Italy is Rome."}}};
  EXPECT_EQ(nlohmann::json::parse(read_text(saved)), expected);
}

TEST(CliChat, MessagesMayHaveSeveralLinesAndASystemMessageStays) {
  const TemporaryFolder folder;
  const std::string saved = (folder.path() / "saved.json").string();
  const Outcome outcome =
      chat("forget this\n/reset\nWhat is\\\n the capital of Spain?\n/save " + saved + "\n",
           "--system 'Answer in one sentence.' -n 12");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const nlohmann::json messages = nlohmann::json::parse(read_text(saved));
  ASSERT_EQ(messages.size(), 3u);
  EXPECT_EQ(messages[0].at("role"), "system");
  EXPECT_EQ(messages[1].at("content"), "What is\n the capital of Spain?");
}

TEST(CliChat, SaysWhatIsWrong) {
  const Outcome bogus = chat("/bogus\n");
  EXPECT_EQ(bogus.status, 1);
  EXPECT_TRUE(contains(bogus.err, "/bogus: no such command")) << bogus.err;
  EXPECT_EQ(chat("/quit \nHi\n").out, "");
  EXPECT_TRUE(contains(chat("", "--stop ''").err, "empty")) << "before the first message";
  EXPECT_EQ(tandem("chat '" + atlas_folder + "' --device cpu --context 64 </").status, 1);
  EXPECT_TRUE(contains(chat("/save\n").err, "expected /save FILE"));
  const Outcome existing = chat("/save " + atlas_folder + "/manifest.json\n");
  EXPECT_EQ(existing.status, 1);
  EXPECT_TRUE(contains(existing.err, "already_exists")) << existing.err;
  std::string text;
  for (int i = 0; i < 200; ++i) text += "many words ";
  const Outcome longer = chat(text + "\n");
  EXPECT_EQ(longer.status, 1);
  EXPECT_TRUE(contains(longer.err, "context_exceeded")) << longer.err;
  EXPECT_TRUE(contains(longer.err, "/reset")) << longer.err;
}

TEST(CliChat, SaysThatAnAnswerWasCutOnALineOfItsOwn) {
  const Outcome cut = chat("Hi\n", "-n 2 2>&1");
  EXPECT_EQ(cut.status, 0);
  EXPECT_TRUE(contains(cut.out, "\n(ended by length)\n")) << cut.out;
}

std::string generate(const std::string& options) {
  return "generate '" + atlas_folder + "' --device cpu --context 64 -n 12 --ignore-eos " +
         "--chat 'Tell me about Kenya.' --json " + options;
}

nlohmann::json last_line(const std::string& text) {
  return nlohmann::json::parse(text.substr(text.rfind('\n', text.size() - 2) + 1));
}

TEST(CliSampling, ASeedGivesOneTextAndIsSaid) {
  const Outcome one = tandem(generate("--temperature 3 --seed 5"));
  const Outcome two = tandem(generate("--temperature 3 --seed 5"));
  const Outcome other = tandem(generate("--temperature 3 --seed 6"));
  ASSERT_EQ(one.status, 0) << one.err;
  EXPECT_TRUE(contains(one.err, "(temperature 3, seed 5)")) << one.err;
  EXPECT_EQ(last_line(one.out).at("ids"), last_line(two.out).at("ids"));
  EXPECT_NE(last_line(one.out).at("ids"), last_line(other.out).at("ids"));
  // A seed that was drawn repeats the text.
  const nlohmann::json drawn = last_line(tandem(generate("--temperature 3")).out);
  const std::string seed = drawn.at("sampling").at("seed").dump();
  EXPECT_EQ(last_line(tandem(generate("--temperature 3 --seed " + seed)).out).at("ids"),
            drawn.at("ids"));
}

TEST(CliSampling, OptionsReachTheSampler) {
  const nlohmann::json greedy = last_line(tandem(generate("")).out);
  EXPECT_EQ(greedy.at("sampling").at("temperature"), 0);
  EXPECT_EQ(last_line(tandem(generate("--temperature 3 --top-k 1")).out).at("ids"),
            greedy.at("ids"));
  const Outcome biased = tandem(generate("--bias 300=1e9 --bias 301=-1e9"));
  EXPECT_EQ(last_line(biased.out).at("ids"), std::vector<uint32_t>(12, 300)) << biased.err;
  const Outcome stopped = tandem("generate '" + atlas_folder +
                                 "' --device cpu --context 64 --chat 'What is the capital of "
                                 "France?' --stop never --stop ' Par' --json");
  EXPECT_EQ(last_line(stopped.out).at("text"), "The capital of France is") << stopped.err;
  EXPECT_EQ(last_line(stopped.out).at("stop_reason"), "stop_string");
}

TEST(CliSampling, Refusals) {
  for (const auto& [options, status, words] :
       {std::tuple{"--top-k 5", 1, "--temperature above 0"},
        {"--seed 5", 1, "--temperature above 0"},
        {"--temperature -1", 1, "temperature must be"},
        {"--temperature 1 --top-p 0", 1, "top_p must be"},
        {"--temperature 1 --min-p 2", 1, "min_p must be"},
        {"--repetition-penalty 0", 1, "repetition_penalty must be"},
        {"--bias 9000=1", 1, "9000"},
        {"--bias 3=1 --bias 3=2", 1, "more than one bias"},
        {"--bias 3", 2, "ID=VALUE"},
        {"--bias x=1", 2, "ID=VALUE"},
        {"--bias 3=y", 2, "ID=VALUE"},
        {"--temperature 1 --seed 18446744073709551616", 2, "whole number"},
        {"--temperature 1 --seed -1", 2, "whole number"},
        {"--seed ''", 2, "empty"},
        {"--temperature ''", 2, "empty"},
        {"--trace ''", 2, "empty"},
        {"--no-mtp=x", 2, "no-mtp"},
        {"--temperature warm", 2, "--temperature"},
        {"--top-k -1", 2, "--top-k"},
        {"--stop ''", 1, "empty"}}) {
    const Outcome outcome = tandem(generate(options));
    EXPECT_EQ(outcome.status, status) << options << ": " << outcome.err;
    EXPECT_TRUE(contains(outcome.err, words)) << options << ": " << outcome.err;
  }
}

}  // namespace
}  // namespace tandem::test
