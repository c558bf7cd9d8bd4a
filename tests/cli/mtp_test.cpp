// The faces of MTP: its options, what is said of rounds, their trace, and the table of tandem
// bench.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/program.h"

namespace tandem::test {
namespace {

using Json = nlohmann::json;
using Ids = std::vector<uint32_t>;

std::string on_cpu(const std::string& command, const std::string& rest) {
  return command + " '" + atlas_folder + "' --device cpu --context 128 " + rest;
}

const std::string languages = "--chat 'Which languages do people speak in Chile?' --json ";

Json last_line(const std::string& text) {
  return Json::parse(text.substr(text.rfind('\n', text.size() - 2) + 1));
}

TEST(CliMtp, RoundsAreToldAndTraced) {
  const TemporaryFolder folder;
  const std::string file = (folder.path() / "trace.jsonl").string();
  const std::string traced = on_cpu("generate", languages + "--mtp --trace '" + file + "'");
  const Outcome drafted = tandem(traced);
  ASSERT_EQ(drafted.status, 0) << drafted.err;
  EXPECT_TRUE(contains(drafted.err, "mtp on: ")) << drafted.err;
  EXPECT_TRUE(contains(drafted.err, " tokens per round, accepted ")) << drafted.err;
  const Json result = last_line(drafted.out), stats = result.at("stats");
  EXPECT_EQ(stats.at("mtp"), "on");

  Ids ids;
  uint32_t rounds = 0;
  std::array<uint32_t, 2> verified = {};
  std::istringstream trace(read_text(file));
  for (std::string line; std::getline(trace, line); ++rounds) {
    const Json round = Json::parse(line);
    const Ids targets = round.at("targets"), drafts = round.at("drafts");
    ids.insert(ids.end(), targets.begin(), targets.begin() + round.at("accepted") + 1);
    for (size_t place = 0; place < drafts.size(); ++place) ++verified[place];
  }
  EXPECT_EQ(stats.at("rounds"), rounds);
  EXPECT_EQ(stats.at("rounds_with_drafts"), verified[0]);
  EXPECT_EQ(stats.at("drafted"), verified);
  const Ids generated = result.at("ids");
  EXPECT_EQ(ids.size(), generated.size() + stats.at("discarded").get<size_t>());
  ids.resize(generated.size());
  EXPECT_EQ(ids, generated);
  EXPECT_DOUBLE_EQ(stats.at("tokens_per_round"),
                   static_cast<double>(generated.size() - 1) / (rounds - 1));
  for (size_t place : {0, 1}) {
    EXPECT_DOUBLE_EQ(stats.at("acceptance").at(place),
                     stats.at("accepted").at(place).get<double>() / verified[place]);
  }

  const Outcome again = tandem(traced);
  EXPECT_EQ(again.status, 1) << "an existing file is not replaced";
  EXPECT_TRUE(contains(again.err, "already_exists")) << again.err;

  const Outcome plain = tandem(on_cpu("generate", languages + "--no-mtp"));
  EXPECT_TRUE(contains(plain.err, "mtp off: ")) << plain.err;
  EXPECT_EQ(last_line(plain.out).at("ids"), result.at("ids"));
  EXPECT_EQ(last_line(plain.out).at("stats").at("drafted"), Json({0, 0}));
}

TEST(CliMtp, DraftsSayHowManyAndNoneLoadsNoAssistant) {
  const auto stats = [](const std::string& options) {
    return last_line(tandem(on_cpu("generate", languages + options)).out).at("stats");
  };
  const Json two = stats(""), one = stats("--drafts 1 --mtp"), none = stats("--drafts 0");
  EXPECT_EQ(two.at("mtp"), "auto");
  EXPECT_GT(two.at("drafted").at(1), 0);
  EXPECT_GT(one.at("drafted").at(0), 0);
  EXPECT_EQ(one.at("drafted").at(1), 0);
  EXPECT_EQ(none.at("mtp"), "off");
  EXPECT_EQ(none.at("rounds"), none.at("generated_tokens"));
}

TEST(CliMtp, DraftsInVainAreWarnedOf) {
  const std::string text = "-n 48 --ignore-eos --mtp -p Behold ";
  const Outcome bad = tandem(on_cpu("generate", text + "--repetition-penalty 3"));
  EXPECT_TRUE(contains(bad.err, "; warning: acceptance ")) << bad.err;
  const Outcome good = tandem(on_cpu("generate", "--mtp --chat 'Tell me about France.'"));
  EXPECT_TRUE(contains(good.err, "mtp on: ")) << good.err;
  EXPECT_FALSE(contains(good.err, "warning")) << good.err;
}

TEST(CliMtp, ChatTellsOfItsRounds) {
  const TemporaryFolder folder;
  const auto input = folder.path() / "input";
  write_file(input, std::string("What is the capital of France?\n/stats\n"));
  const Outcome outcome = tandem(on_cpu("chat", "--mtp <'" + input.string() + "'"));
  EXPECT_EQ(outcome.out, "The capital of France is Paris.\n");
  EXPECT_TRUE(contains(outcome.err, "; mtp on: ")) << outcome.err;
}

TEST(CliMtp, BenchPutsMtpBesidePlain) {
  const TemporaryFolder folder;
  const std::string file = (folder.path() / "bench.json").string();
  const Outcome outcome =
      tandem(on_cpu("bench",
                    "--depths 8 --prefill 8 --repeat 1 -n 4 --forced 1,2,3 --forced-depth "
                    "8 --json '" +
                        file + "'"));
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  for (const char* part : {"questions", "profiles", "free text", "ratio", "acceptance", " % "}) {
    EXPECT_TRUE(contains(outcome.out, part)) << part << " in\n" << outcome.out;
  }
  const Json result = Json::parse(read_text(file));
  const Json rows = result.at("mtp");
  ASSERT_EQ(rows.size(), 3u);
  for (const Json& row : rows) {
    const double plain = row.at("plain").at("median"), mtp = row.at("mtp").at("median");
    EXPECT_EQ(row.at("plain").at("tokens_per_second").size(), 1u);
    EXPECT_DOUBLE_EQ(row.at("ratio"), mtp / plain);
    const std::array<uint32_t, 2> drafted = row.at("drafted"), accepted = row.at("accepted");
    EXPECT_DOUBLE_EQ(row.at("acceptance"),
                     static_cast<double>(accepted[0] + accepted[1]) / (drafted[0] + drafted[1]));
    EXPECT_DOUBLE_EQ(row.at("tokens_per_round"),
                     row.at("tokens").get<double>() / row.at("rounds").get<double>());
    EXPECT_EQ(row.at("tokens"), row.at("rounds").get<uint32_t>() + accepted[0] + accepted[1]);
  }
  EXPECT_TRUE(contains(outcome.out, "forced acceptance")) << outcome.out;
  const Json forced = result.at("forced");
  ASSERT_EQ(forced.size(), 3u);
  for (uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(forced[i].at("tokens_per_round"), i + 1);
    const double plain = forced[i].at("plain").at("median"), mtp = forced[i].at("mtp").at("median");
    EXPECT_DOUBLE_EQ(forced[i].at("ratio"), mtp / plain);
    EXPECT_DOUBLE_EQ(forced[i].at("round_ms"), 1e3 * (i + 1) / mtp);
  }
}

TEST(CliMtp, Refusals) {
  const TemporaryFolder folder;
  const std::string plain = (folder.path() / "plain").string();
  ASSERT_EQ(tandem("synthesize --geometry atlas -o '" + plain + "'").status, 0);
  const std::string rest = " --device cpu --context 64 -n 2 -p a ";
  for (const auto& [artifact, options, status, words] :
       {std::tuple{atlas_folder, "--mtp --no-mtp", 2, "--no-mtp"},
        {atlas_folder, "--mtp=often", 2, "often"},
        {atlas_folder, "--drafts 3", 2, "--drafts"},
        {atlas_folder, "--drafts 0 --mtp", 1, "--mtp: no assistant was loaded"},
        {atlas_folder, "--trace /none/trace", 1, "/none"},
        {plain, "--mtp", 1, "--mtp: no assistant was loaded"},
        {plain, "--drafts 1", 1, "the artifact has no assistant"}}) {
    const Outcome outcome = tandem("generate '" + artifact + "'" + rest + options);
    EXPECT_EQ(outcome.status, status) << options << ": " << outcome.err;
    EXPECT_TRUE(contains(outcome.err, words)) << options << ": " << outcome.err;
  }
  const Outcome automatic = tandem("generate '" + plain + "'" + rest + "--mtp=auto");
  EXPECT_EQ(automatic.status, 0) << automatic.err;
  EXPECT_TRUE(contains(automatic.err, "mtp off: ")) << automatic.err;
}

}  // namespace
}  // namespace tandem::test
