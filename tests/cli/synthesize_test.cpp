// tandem synthesize, and how the other commands speak of what it makes.
#include <gtest/gtest.h>

#include <filesystem>

#include "cli/program.h"
#include "text/utf8.h"

namespace tandem::test {
namespace {

TEST(CliSynthesize, MakesAnArtifactThatRunsAndIsNamedSynthetic) {
  const TemporaryFolder folder;
  const std::string out = (folder.path() / "random").string();
  const Outcome made = tandem("synthesize --geometry atlas --seed 3 -o '" + out + "'");
  ASSERT_EQ(made.status, 0) << made.err;
  EXPECT_TRUE(contains(made.out, "seed 3")) << made.out;
  const Outcome verified = tandem("verify '" + out + "'");
  EXPECT_EQ(verified.status, 0) << verified.err;
  EXPECT_TRUE(contains(verified.out, "synthetic")) << verified.out;
  const Outcome inspected = tandem("inspect '" + out + "'");
  EXPECT_TRUE(contains(inspected.out, "synthetic: random weights")) << inspected.out;
  const Outcome answer =
      tandem("generate '" + out + "' -p hello -n 4 --ignore-eos --device cpu --context 16");
  EXPECT_EQ(answer.status, 0) << answer.err;
  EXPECT_EQ(text::valid_utf8(answer.out), answer.out.size());
  const Outcome again = tandem("synthesize --geometry atlas -o '" + out + "'");
  EXPECT_EQ(again.status, 1);
  EXPECT_TRUE(contains(again.err, "already_exists")) << again.err;
}

TEST(CliSynthesize, MakesAnAssistantToo) {
  const TemporaryFolder folder;
  const std::string out = (folder.path() / "random").string();
  const Outcome made = tandem("synthesize --geometry atlas --assistant -o '" + out + "'");
  ASSERT_EQ(made.status, 0) << made.err;
  const Outcome answer =
      tandem("generate '" + out + "' -p hello -n 4 --ignore-eos --device cpu --context 16 --mtp");
  EXPECT_EQ(answer.status, 0) << answer.err;
}

TEST(CliSynthesize, ExportsAreNotNamedSynthetic) {
  for (const char* command : {"verify '", "inspect '"}) {
    const Outcome outcome = tandem(command + atlas_folder + "'");
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_FALSE(contains(outcome.out, "synthetic")) << outcome.out;
  }
}

TEST(CliSynthesize, Refusals) {
  const TemporaryFolder folder;
  const std::string out = (folder.path() / "random").string();
  const Outcome unknown = tandem("synthesize --geometry e3b -o '" + out + "'");
  EXPECT_EQ(unknown.status, 1);
  EXPECT_TRUE(contains(unknown.err, "e3b: expected one of e2b, e4b, atlas")) << unknown.err;
  EXPECT_FALSE(std::filesystem::exists(out));
  EXPECT_EQ(tandem("synthesize -o '" + out + "'").status, 2);
  EXPECT_EQ(tandem("synthesize --geometry atlas").status, 2);
  EXPECT_EQ(tandem("synthesize --geometry atlas --seed -1 -o '" + out + "'").status, 2);
  EXPECT_EQ(tandem("synthesize --geometry atlas -o '" + out + "/none/deep'").status, 1);
}

}  // namespace
}  // namespace tandem::test
