// Engines of a plain artifact with an attached assistant: the tokens and rounds of the direct one,
// and what the options refuse.
#include <gtest/gtest.h>

#include "artifact/artifact.h"
#include "exporter/export.h"
#include "support/checkpoint.h"
#include "support/device.h"
#include "support/golden.h"
#include "support/refusal.h"
#include "tandem/engine.h"

namespace tandem::test {
namespace {

// "plain", "attached" to it, and both as "direct".
const std::filesystem::path& exports() {
  static const TemporaryFolder folder;
  static const bool made = [] {
    const std::filesystem::path& at = folder.path();
    const std::string config = tiny_assistant_config();
    write_checkpoint(at / "target", tiny_config());
    write_checkpoint(at / "assistant", config, random_assistant_tensors(config));
    exporter::ExportOptions direct;
    direct.assistant = at / "assistant";
    EXPECT_TRUE(accepted(exporter::export_checkpoint(at / "target", at / "plain")));
    EXPECT_TRUE(
        accepted(exporter::export_assistant(at / "assistant", at / "plain", at / "attached")));
    EXPECT_TRUE(accepted(exporter::export_checkpoint(at / "target", at / "direct", direct)));
    return true;
  }();
  EXPECT_TRUE(made);
  return folder.path();
}

std::string at(const char* name) { return (exports() / name).string(); }

struct Generated {
  std::vector<uint32_t> ids;
  std::vector<std::vector<uint32_t>> drafts;  // of each round
};

Generated generate(const std::string& artifact, const EngineOptions& options, Mtp mtp) {
  Engine engine = expect_value(Engine::open(artifact, options));
  Session session = expect_value(engine.session());
  Generated result;
  const std::vector<uint32_t> prompt = {2, 10, 11, 40, 41};
  GenerateOptions asked{.max_tokens = 24, .ignore_eos = true, .mtp = mtp};
  asked.sampling = SampleOptions{.temperature = 0};
  asked.on_round = [&](const RoundInfo& round) { result.drafts.push_back(round.drafts); };
  result.ids = expect_value(session.generate(prompt, asked)).ids;
  return result;
}

void expect_the_direct_ones_tokens(EngineOptions options) {
  const Generated direct = generate(at("direct"), options, Mtp::on);
  const Generated plain = generate(at("plain"), options, Mtp::off);
  options.assistant = at("attached");
  const Generated attached = generate(at("plain"), options, Mtp::on);
  EXPECT_EQ(attached.ids, direct.ids);
  EXPECT_EQ(attached.drafts, direct.drafts);
  EXPECT_EQ(attached.ids, plain.ids);
  EXPECT_EQ(attached.ids.size(), 24u);
}

TEST(AttachedOnCpu, GivesTheDirectOnesTokens) {
  expect_the_direct_ones_tokens({.place = Place::cpu, .context = 64});
}

TEST(AttachedOnGpu, GivesTheDirectOnesTokens) {
  expect_the_direct_ones_tokens({.adapter = adapter_name(), .context = 64, .input_bound = 16});
}

TEST(AttachedOnCpu, InfoNamesTheAttachedManifest) {
  const EngineOptions with{.place = Place::cpu, .context = 64, .assistant = at("attached")};
  const auto engine = Engine::open(at("plain"), with);
  ASSERT_TRUE(accepted(engine));
  EXPECT_EQ(engine->info().artifact, sha256(read_file(at("attached") + "/manifest.json")).hex());
  EXPECT_EQ(engine->info().drafts, 2u);
  EXPECT_EQ(engine->info().provenance, "pending");
  EXPECT_TRUE(refused(Engine::open(at("attached"), {.place = Place::cpu}),
                      ErrorCode::invalid_argument, {"--assistant"}));
  EXPECT_TRUE(refused(Engine::open(at("direct"), with), ErrorCode::bad_value, {"of its own"}));
}

TEST(VerifiedOnCpu, PendingIsRefusedWithItsFilesAndWhatToDo) {
  EngineOptions options{.place = Place::cpu, .context = 64, .require_verified = true};
  const auto refusal = Engine::open(at("plain"), options);
  EXPECT_TRUE(refused(refusal, ErrorCode::unverified, {"a pin", "config.json", "--sources"}));
  const std::string atlas = std::string(TANDEM_SOURCE_DIR) + "/models/atlas";
  options.drafts = 0;
  const auto engine = Engine::open(atlas, options);
  ASSERT_TRUE(accepted(engine));
  EXPECT_EQ(engine->info().provenance, "verified");
  options.sources = at("none.json");
  EXPECT_TRUE(refused(Engine::open(atlas, options), ErrorCode::not_found, {"none.json"}));
}

}  // namespace
}  // namespace tandem::test
