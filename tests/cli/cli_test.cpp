// The program as a user meets it: exit status, what goes to standard output and what to standard
// error, and its refusals.

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>

#include "cli/program.h"
#include "support/checkpoint.h"
#include "support/golden.h"

namespace tandem::test {
namespace {

TEST(Cli, GenerateAnswersAndReports) {
  const Outcome outcome =
      tandem(on_gpu("generate", "--chat 'What is the capital of France?' --json"));
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_TRUE(outcome.out.starts_with("The capital of France is Paris.\n")) << outcome.out;
  EXPECT_TRUE(contains(outcome.err, "tokens/s")) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "adapter: ")) << outcome.err;
  const size_t last_line = outcome.out.rfind('\n', outcome.out.size() - 2) + 1;
  const nlohmann::json json = nlohmann::json::parse(outcome.out.substr(last_line));
  EXPECT_EQ(json.at("text"), "The capital of France is Paris.");
  EXPECT_EQ(json.at("stop_reason"), "stop_id");
  EXPECT_EQ(json.at("ids").back(), 5);
  EXPECT_EQ(json.at("stats").at("generated_tokens"), json.at("ids").size());
}

TEST(Cli, GenerateOnTheCpuFromIds) {
  const Outcome outcome =
      tandem("generate '" + atlas_folder +
             "' --device cpu --context 64 --ids 2,4,589,262 -n 3 --ignore-eos --json");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "adapter: cpu"));
  EXPECT_TRUE(contains(outcome.out, "\"stop_reason\":\"length\""));
}

TEST(Cli, LogitsFileHoldsOneRowOrAll) {
  const TemporaryFolder folder;
  for (const auto& [flag, rows] : {std::pair<std::string, uint64_t>{"", 1}, {"--all-rows", 3}}) {
    const std::string file =
        (folder.path() / ("rows" + std::to_string(rows) + ".safetensors")).string();
    const Outcome outcome =
        tandem(on_gpu("logits", "--ids 2,10,11 " + flag + " -o '" + file + "'"));
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    const std::string bytes = read_text(file);
    uint64_t length = 0;
    std::memcpy(&length, bytes.data(), 8);
    const nlohmann::json header = nlohmann::json::parse(bytes.substr(8, length));
    EXPECT_EQ(header.at("logits").at("dtype"), "F32");
    EXPECT_EQ(header.at("logits").at("shape"), (std::vector<uint64_t>{rows, 8192}));
    EXPECT_EQ(bytes.size(), 8 + length + rows * 8192 * 4);
    const Outcome again = tandem(on_gpu("logits", "--ids 2,10,11 -o '" + file + "'"));
    EXPECT_EQ(again.status, 1) << "an existing file is not replaced";
    EXPECT_TRUE(contains(again.err, "already_exists")) << again.err;
  }
}

TEST(Cli, TokenizeBothWays) {
  const Outcome ids = tandem("tokenize '" + atlas_folder + "' -p 'Hello, world!'");
  ASSERT_EQ(ids.status, 0) << ids.err;
  EXPECT_TRUE(ids.out.ends_with("2,298,630,334,273,909,263\n")) << ids.out;
  const Outcome text = tandem("tokenize '" + atlas_folder + "' --ids 298,630,334,273,909,263");
  EXPECT_EQ(text.out, "Hello, world!\n");
  const Outcome chat =
      tandem("tokenize '" + atlas_folder + "' --chat 'What is the capital of France?'");
  std::string expected;
  for (uint32_t id : Golden("target").ids("short.ids"))
    expected += (expected.empty() ? "" : ",") + std::to_string(id);
  EXPECT_TRUE(chat.out.ends_with(expected + "\n")) << chat.out;
}

TEST(Cli, ExportVerifyAndInspect) {
  const TemporaryFolder folder;
  const std::string checkpoint = (folder.path() / "tiny").string(),
                    out = (folder.path() / "artifact").string();
  write_checkpoint(checkpoint, tiny_config());
  const Outcome exported =
      tandem("export '" + checkpoint + "' -o '" + out + "' --tensor layers.0.down=f16");
  ASSERT_EQ(exported.status, 0) << exported.err;
  EXPECT_TRUE(contains(exported.out, "layers.0.down f16")) << exported.out;
  EXPECT_EQ(tandem("verify '" + out + "'").status, 0);
  const Outcome inspected = tandem("inspect '" + out + "'");
  EXPECT_EQ(inspected.status, 0);
  EXPECT_TRUE(contains(inspected.out, "sliding_attention")) << inspected.out;
  EXPECT_TRUE(contains(inspected.out, "family        Gemma 4\n")) << inspected.out;
  const Outcome again = tandem("export '" + checkpoint + "' -o '" + out + "'");
  EXPECT_EQ(again.status, 1);
  EXPECT_TRUE(contains(again.err, "already_exists")) << again.err;
  std::filesystem::resize_file(out + "/manifest.json", 100);
  EXPECT_EQ(tandem("verify '" + out + "'").status, 1);
}

TEST(Cli, SettingsThatMeanNothingAreListed) {
  const TemporaryFolder folder;
  const std::string in = (folder.path() / "in").string(), out = (folder.path() / "out").string();
  write_checkpoint(in, tiny_gemma3_config());
  write_file(in + "/generation_config.json",
             R"({"eos_token_id": 1, "cache_implementation": "hybrid", "no_\u009brepeat": 3})");
  const std::string listed =
      "ignored settings of generation_config.json: cache_implementation, no_\\u009brepeat\n";
  const Outcome exported = tandem("export '" + in + "' -o '" + out + "'");
  ASSERT_EQ(exported.status, 0) << exported.err;
  EXPECT_TRUE(contains(exported.out, listed)) << exported.out;
  const Outcome verified = tandem("verify '" + out + "'");
  EXPECT_TRUE(contains(verified.out, listed)) << verified.out << verified.err;
  const std::string& text = verified.out;
  EXPECT_EQ(text.find("digest  "), text.rfind('\n', text.size() - 2) + 1) << "not last: " << text;
  EXPECT_TRUE(contains(tandem("inspect '" + out + "'").out, "family        Gemma 3\n"));
}

// Names of files, whoever chose them, are shown and do not act.
TEST(Cli, ControlBytesAreShownAsEscapes) {
  const TemporaryFolder folder;
  const std::string in = (folder.path() / "in").string(), out = (folder.path() / "out").string();
  const std::string csi = "\xc2\x9b", del = "\x7f", escape = "\x1b";
  write_checkpoint(in, tiny_config());
  for (const std::string& name : {csi, del, escape, std::string("\x9b")}) {
    const Outcome exported = tandem("export '" + in + "' -o '" + out + name + "'" +
                                    " --published 'us" + csi + del + escape + "@0'");
    ASSERT_EQ(exported.status, 0) << exported.err;
    for (const char* command : {"verify", "inspect", "inspect --json"}) {
      const Outcome shown = tandem(std::string(command) + " '" + out + name + "'");
      ASSERT_EQ(shown.status, 0) << shown.err;
      for (const std::string& text : {exported.out, shown.out}) {
        for (const std::string& byte : {csi, del, escape, std::string("\x9b")})
          EXPECT_FALSE(contains(text, byte)) << command;
      }
    }
  }
}

TEST(Cli, ExportsAPairThatDraftsAndRefusesOneThatDoesNotFit) {
  const TemporaryFolder folder;
  const auto path = [&](const char* name) { return "'" + (folder.path() / name).string() + "'"; };
  write_checkpoint(folder.path() / "target", tiny_config());
  const std::string fits = tiny_assistant_config();
  write_checkpoint(folder.path() / "assistant", fits, random_assistant_tensors(fits));
  const std::string other = tiny_assistant_config({.vocabulary = 256});
  write_checkpoint(folder.path() / "other", other, random_assistant_tensors(other));

  const auto export_with = [&](const char* assistant, const char* out) {
    return tandem("export " + path("target") + " --assistant " + path(assistant) + " -o " +
                  path(out));
  };
  const Outcome exported = export_with("assistant", "pair");
  ASSERT_EQ(exported.status, 0) << exported.err;
  EXPECT_EQ(tandem("verify " + path("pair")).status, 0);
  EXPECT_TRUE(contains(tandem("inspect " + path("pair")).out, "assistant"));
  const Outcome drafted = tandem("generate " + path("pair") +
                                 " --device cpu --ids 2,10,11 -n 8 --ignore-eos --mtp --json");
  EXPECT_EQ(drafted.status, 0) << drafted.err;
  const Outcome plain = tandem("generate " + path("pair") +
                               " --device cpu --ids 2,10,11 -n 8 --ignore-eos --drafts 0 --json");
  const auto ids = [](const Outcome& outcome) {
    const size_t line = outcome.out.rfind('\n', outcome.out.size() - 2) + 1;
    return nlohmann::json::parse(outcome.out.substr(line)).at("ids");
  };
  EXPECT_EQ(ids(drafted), ids(plain));

  const Outcome refused = export_with("other", "none");
  EXPECT_EQ(refused.status, 1);
  EXPECT_TRUE(contains(refused.err, "512") && contains(refused.err, "256")) << refused.err;
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "none"));
}

TEST(Cli, AnAttachedAssistantDraftsWithItsArtifactOnly) {
  const TemporaryFolder folder;
  const auto path = [&](const char* name) { return "'" + (folder.path() / name).string() + "'"; };
  const std::string config = tiny_assistant_config();
  write_checkpoint(folder.path() / "target", tiny_config());
  write_checkpoint(folder.path() / "assistant", config, random_assistant_tensors(config));
  ASSERT_EQ(tandem("export " + path("target") + " -o " + path("plain")).status, 0);
  const std::string onto = "export --assistant " + path("assistant") + " --onto " + path("plain");
  const Outcome exported = tandem(onto + " -o " + path("attached"));
  ASSERT_EQ(exported.status, 0) << exported.err;
  const std::string both = path("plain") + " --assistant " + path("attached");
  const Outcome verified = tandem("verify " + both);
  EXPECT_EQ(verified.status, 0) << verified.err;
  EXPECT_TRUE(contains(verified.out, "attached to")) << verified.out;
  EXPECT_TRUE(contains(tandem("inspect " + both).out, "attached to"));
  const std::string reader = "python3 '" TANDEM_SOURCE_DIR "/docs/read_artifact.py' ";
  EXPECT_EQ(std::system((reader + path("plain") + " " + path("attached") + " >/dev/null").c_str()),
            0);
  EXPECT_NE(std::system((reader + path("attached") + " 2>/dev/null").c_str()), 0);
  const Outcome drafted = tandem("generate " + both + " --device cpu --ids 2,10 -n 4 --mtp --json");
  EXPECT_EQ(drafted.status, 0) << drafted.err;
  for (const char* command : {"verify ", "inspect ", "generate --device cpu --ids 2,10 "}) {
    const Outcome alone = tandem(command + path("attached"));
    EXPECT_EQ(alone.status, 1);
    EXPECT_TRUE(contains(alone.err, "--assistant")) << alone.err;
  }
  EXPECT_EQ(tandem(onto + " " + path("target") + " -o " + path("x")).status, 2);
  EXPECT_EQ(tandem("export --onto " + path("plain") + " -o " + path("x")).status, 2);
  EXPECT_EQ(tandem(onto + " --context-bound 8 -o " + path("x")).status, 2);
  EXPECT_EQ(tandem("export -o " + path("x")).status, 1);
  EXPECT_EQ(tandem("export " + path("target") + " --published us -o " + path("x")).status, 1);
}

TEST(Cli, PendingIsRefusedWhereVerifiedIsWanted) {
  const TemporaryFolder folder;
  const std::string in = (folder.path() / "tiny").string(), out = (folder.path() / "out").string();
  write_checkpoint(in, tiny_config());
  const Outcome exported = tandem("export '" + in + "' -o '" + out + "'");
  ASSERT_EQ(exported.status, 0) << exported.err;
  EXPECT_TRUE(contains(exported.out, "pending")) << exported.out;
  EXPECT_TRUE(contains(tandem("verify '" + out + "'").out, "pending"));
  for (const char* command : {"verify", "inspect", "generate --device cpu --ids 2", "bench"}) {
    const Outcome refused = tandem(command + (" '" + out + "' --require-verified"));
    EXPECT_EQ(refused.status, 1);
    EXPECT_TRUE(contains(refused.err, "[unverified]")) << refused.err;
    EXPECT_TRUE(contains(refused.err, "expected the files of a pin")) << refused.err;
  }
  // A file of pins, from what inspect says that it was made from.
  const auto shown = nlohmann::json::parse(tandem("inspect '" + out + "' --json").out);
  EXPECT_EQ(shown.at("provenance").at("state"), "pending");
  const nlohmann::json pin = {{"name", "mine"},
                              {"role", "target"},
                              {"published", nullptr},
                              {"files", shown.at("target").at("sources")}};
  const nlohmann::json pins = {
      {"schema", "tandem.sources"}, {"schema_version", 2}, {"pins", {pin}}};
  const std::string file = (folder.path() / "mine.json").string();
  write_file(file, pins.dump(2) + "\n");
  const Outcome verified =
      tandem("verify '" + out + "' --require-verified --sources '" + file + "'");
  EXPECT_EQ(verified.status, 0) << verified.err;
  EXPECT_TRUE(contains(verified.out, "mine.json")) << verified.out;
  EXPECT_EQ(tandem("verify '" + atlas_folder + "' --require-verified").status, 0);
}

TEST(Cli, BenchOnTheCpuNamesNoDriver) {
  const Outcome bench =
      tandem("bench '" + atlas_folder +
             "' --device cpu --drafts 0 --context 64 --depths 8 --prefill 8 -n 2 --repeat 1");
  EXPECT_EQ(bench.status, 0) << bench.err;
  EXPECT_TRUE(contains(bench.out, "atlas on cpu; commit ")) << bench.out;
}

TEST(Cli, InspectShowsAllOnOneScreen) {
  const std::string text = tandem("inspect '" + atlas_folder + "'").out;
  size_t lines = 0;
  for (size_t begin = 0, end; (end = text.find('\n', begin)) != text.npos; begin = end + 1) {
    ++lines;
    EXPECT_LE(end - begin, 100u) << text.substr(begin, end - begin);
  }
  EXPECT_LE(lines, 40u) << text;
  for (const char* word : {"verified", "atlas-gemma4-assistant", "sources", "recipe", "views",
                           "parameters", "shards", "tokenizer.bin", "centroids"})
    EXPECT_TRUE(contains(text, word)) << word << "\n" << text;
  EXPECT_TRUE(contains(text, " 1 KV head,")) << text;
  EXPECT_FALSE(std::regex_search(text, std::regex("\\b1 (KV head|tensor|piece|file)s\\b"))) << text;
  const auto json = nlohmann::json::parse(tandem("inspect '" + atlas_folder + "' --json").out);
  EXPECT_EQ(json.at("manifest"), nlohmann::json::parse(read_file(atlas_folder + "/manifest.json")));
  EXPECT_EQ(json.at("provenance").at("state"), "verified");
  EXPECT_EQ(json.at("provenance").at("matches").size(), 2u);
  EXPECT_GT(json.at("parameters").at("target"), json.at("parameters").at("assistant"));
  EXPECT_EQ(tandem("inspect '" + atlas_folder + "' --json --plan").status, 2);
}

TEST(Cli, InspectShowsPlanRoutesAndCensus) {
  const Outcome outcome = tandem(on_gpu("inspect", "--plan --routes --census"));
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  for (const char* part :
       {"largest buffer and binding", "decode: ", "linear_row", "prefill: ", "linear_tiled",
        "score: ", "\nk2_round: ", "gathered_linear", "sampled k2_round: "}) {
    EXPECT_TRUE(contains(outcome.out, part)) << part << " in\n" << outcome.out;
  }
}

// What every measured result says of its origin.
void expect_origin(const nlohmann::json& result, const std::string& kind) {
  EXPECT_EQ(result.at("schema"), 1);
  EXPECT_EQ(result.at("kind"), kind);
  EXPECT_EQ(result.at("command").get<std::string>().find("tandem " + kind + " atlas --"), 0u);
  EXPECT_FALSE(contains(result.at("command"), "json")) << result.at("command");
  EXPECT_FALSE(result.at("commit").get<std::string>().empty());
  const std::string date = result.at("date");
  EXPECT_EQ(date.size(), std::string("2026-01-02T03:04:05Z").size());
  EXPECT_EQ(date.back(), 'Z');
  EXPECT_EQ(result.at("artifact").at("name"), "atlas");
  EXPECT_EQ(result.at("artifact").at("digest").get<std::string>().size(), 64u);
  EXPECT_EQ(result.at("artifact").at("synthetic"), false);
  EXPECT_EQ(result.at("device").at("kernel_closure").get<std::string>().size(), 64u);
  for (const char* key : {"adapter", "driver", "library", "software", "tiers"})
    EXPECT_TRUE(result.at("device").contains(key)) << key;
  EXPECT_EQ(result.at("options").at("context"), 128);
  EXPECT_EQ(result.at("options").at("kv"), "f16");
}

TEST(Cli, BenchKeepsEverySampleAndNamesWhatItSkips) {
  const TemporaryFolder folder;
  const std::string file = (folder.path() / "bench.json").string();
  const Outcome outcome = tandem(on_gpu(
      "bench",
      "--drafts 0 --depths 16,126 --prefill 8,20,128 --repeat 2 -n 2 --json '" + file + "'"));
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const nlohmann::json result = nlohmann::json::parse(read_text(file));
  expect_origin(result, "bench");
  EXPECT_EQ(result.at("skipped"), nlohmann::json::parse(R"({"prefill":[128],"decode":[126]})"));
  EXPECT_EQ(result.at("first_token").at("prompt_tokens"), 8);
  std::vector<uint32_t> lengths;
  for (const auto& [series, key] : {std::pair{"prefill", "tokens"}, {"decode", "depth"}}) {
    for (const nlohmann::json& row : result.at(series)) {
      lengths.push_back(row.at(key));
      const std::vector<double> samples = row.at("tokens_per_second");
      ASSERT_EQ(samples.size(), 2u);
      EXPECT_GT(row.at("min"), 0);
      EXPECT_EQ(row.at("min"), std::min(samples[0], samples[1]));
      EXPECT_EQ(row.at("max"), std::max(samples[0], samples[1]));
      EXPECT_EQ(row.at("median"), (samples[0] + samples[1]) / 2);
    }
  }
  EXPECT_EQ(lengths, (std::vector<uint32_t>{8, 20, 16}));
  EXPECT_FALSE(result.contains("mtp")) << "no assistant was loaded";
  EXPECT_TRUE(contains(outcome.out, "skipped")) << outcome.out;
  EXPECT_TRUE(contains(outcome.out, result.at("device").at("driver"))) << outcome.out;
  const bool software = result.at("device").at("software");
  EXPECT_EQ(contains(outcome.out, "(software)"), software) << outcome.out;
}

TEST(Cli, ProfileAccountsForEveryDispatch) {
  const TemporaryFolder folder;
  const std::string file = (folder.path() / "profile.json").string(),
                    trace_file = (folder.path() / "trace.json").string();
  const Outcome outcome = tandem(on_gpu(
      "profile", "-n 3 --prompt-tokens 20 --json '" + file + "' --trace '" + trace_file + "'"));
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  for (const char* part :
       {"us/prefill", "us/token", "us/round", "gathered_linear",
        "linear_row q4_0 3072x256 gelu_pair", "attention 4/1x64 f16", "gaps between dispatches"}) {
    EXPECT_TRUE(contains(outcome.out, part)) << part << " in\n" << outcome.out;
  }
  const nlohmann::json result = nlohmann::json::parse(read_text(file));
  expect_origin(result, "profile");
  uint64_t dispatches = 0;
  ASSERT_EQ(result.at("methods").size(), 3u);
  for (const nlohmann::json& method : result.at("methods")) {
    EXPECT_EQ(method.at("runs"), method.at("method") == "prefill" ? 1 : 3);
    uint64_t calls = 0, time_ns = 0;
    for (const nlohmann::json& kernel : method.at("kernels")) {
      calls += kernel.at("calls").get<uint64_t>();
      time_ns += kernel.at("time_ns").get<uint64_t>();
      EXPECT_TRUE(kernel.at("bytes").is_number_unsigned()) << kernel;
    }
    EXPECT_EQ(method.at("calls"), calls);
    EXPECT_EQ(calls % method.at("runs").get<uint64_t>(), 0u);
    EXPECT_EQ(method.at("time_ns"), time_ns);
    EXPECT_GT(time_ns, 0u);
    dispatches += calls;
  }
  const nlohmann::json trace = nlohmann::json::parse(read_text(trace_file));
  EXPECT_EQ(trace.at("traceEvents").size(), dispatches + 3) << "and the names of three tracks";
}

TEST(Cli, DevicesListsAdaptersAndTiers) {
  const Outcome outcome = tandem("devices");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_TRUE(contains(outcome.out, "tiers     base"));
  EXPECT_TRUE(contains(outcome.out, "GPU timestamps\n"));
  EXPECT_TRUE(contains(outcome.out, "kernel closure "));
}

const nlohmann::json web_limits = {
    {"max_buffer_bytes", 268435456},    {"max_binding_bytes", 134217728},
    {"binding_alignment", 256},         {"max_workgroup_bytes", 16384},
    {"max_workgroup_invocations", 256}, {"max_workgroups_per_dimension", 65535},
    {"max_storage_buffers", 8}};

// `tandem inspect --plan` of the atlas for the limits in a file of this text, on no device.
Outcome plan_for(const std::string& text, const std::string& rest = "") {
  const TemporaryFolder folder;
  write_file(folder.path() / "limits.json", text);
  return tandem("inspect '" + atlas_folder + "' --plan --adapter nonesuch --limits '" +
                (folder.path() / "limits.json").string() + "' " + rest);
}

TEST(Cli, InspectPlansForLimitsWithoutADevice) {
  const Outcome fits = plan_for(web_limits.dump(), "--context 256");
  ASSERT_EQ(fits.status, 0) << fits.err;
  for (const char* part : {"plan: context 256", "weights ", "scratch ", "a session ",
                           "largest buffer and binding: "}) {
    EXPECT_TRUE(contains(fits.out, part)) << part << " in\n" << fits.out;
  }
  const Outcome half = plan_for(web_limits.dump(), "--context 128");
  EXPECT_NE(half.out, fits.out) << "the plan is that of the options";
}

TEST(Cli, InspectTakesTheLimitsThatDevicesPrints) {
  const Outcome limits = tandem("devices --limits '" + adapter_name() + "'");
  ASSERT_EQ(limits.status, 0) << limits.err;
  EXPECT_EQ(plan_for(limits.out).status, 0);
  const Outcome on_device =
      tandem("inspect '" + atlas_folder + "' --plan --adapter '" + adapter_name() + "'");
  const std::string plan = on_device.out.substr(on_device.out.find("plan: "));
  EXPECT_TRUE(contains(plan_for(limits.out).out, plan)) << plan;
}

TEST(Cli, LimitsThatAreTooSmallOrNotUsableAreRefused) {
  const auto with = [](const char* key, const nlohmann::json& value) {
    nlohmann::json limits = web_limits;
    limits[key] = value;
    return limits.dump();
  };
  nlohmann::json without = web_limits;
  without.erase("max_storage_buffers");
  struct Case {
    std::string text;
    std::vector<std::string> words;
  };
  for (const Case& c : std::vector<Case>{
           // The logits of three rows, and 64 rows of a matrix with 768 columns, which no split
           // divides.
           {with("max_binding_bytes", 98300), {"limit_exceeded", "row.logits", "98304", "98300"}},
           {with("max_buffer_bytes", 98300), {"limit_exceeded", "row.logits", "98304", "98300"}},
           {with("max_buffer_bytes", 49148), {"limit_exceeded", "64 rows of 768 bytes", "49148"}},
           {with("max_binding_bytes", 0), {"limit_exceeded", "0 bytes"}},
           {with("max_workgroup_bytes", 16383), {"max_workgroup_bytes", "16384", "16383"}},
           {with("max_workgroup_invocations", 128), {"invocations", "256", "128"}},
           {with("max_workgroups_per_dimension", 65534), {"per_dimension", "65535", "65534"}},
           {with("max_storage_buffers", 4), {"max_storage_buffers", "8", "4"}},
           {with("binding_alignment", 512), {"bad_value", "binding_alignment", "256", "512"}},
           {with("binding_alignment", 48), {"bad_value", "binding_alignment", "48"}},
           {with("max_textures", 1), {"unknown_key", "limits.json: max_textures"}},
           {with("max_buffer_bytes", "1 GiB"), {"wrong_type", "max_buffer_bytes", "1 GiB"}},
           {with("max_buffer_bytes", -1), {"wrong_type", "max_buffer_bytes", "-1"}},
           {with("max_buffer_bytes", 1e9), {"wrong_type", "max_buffer_bytes"}},
           {with("binding_alignment", 1ull << 32), {"bad_value", "binding_alignment"}},
           {without.dump(), {"missing_key", "limits.json: max_storage_buffers"}},
           {"[]", {"wrong_type", "an object"}},
           {"", {"malformed_json", "limits.json"}}}) {
    const Outcome outcome = plan_for(c.text, "--context 64");
    EXPECT_EQ(outcome.status, 1) << c.text << "\n" << outcome.out;
    for (const std::string& word : c.words)
      EXPECT_TRUE(contains(outcome.err, word)) << word << " in\n" << outcome.err;
  }
}

TEST(Cli, RefusalsSayWhyAndHaveAStatus) {
  struct Case {
    std::string arguments;
    int status;
    std::string error;
  };
  const std::string atlas = "'" + atlas_folder + "'";
  for (const Case& c : std::vector<Case>{
           {"", 2, "subcommand"},
           {"frobnicate", 2, "frobnicate"},
           {"frobnicate", 2, "subcommand"},
           {"--help >/dev/full", 1, "tandem: standard output: cannot write"},
           {"--version >/dev/full", 1, "standard output"},
           {"verify --help >/dev/full", 1, "standard output"},
           {"generate " + atlas, 2, "prompt"},
           {"generate " + atlas + " -p a --ids 1", 2, "prompt"},
           {"generate " + atlas + " --ids 2 -n 0", 2, "--max-tokens"},
           {"generate " + atlas + " --ids 2 -n 5000000000", 2, "--max-tokens"},
           {"generate " + atlas + " --ids 2,x", 2, "--ids"},
           {"generate " + atlas + " --ids ''", 2, "--ids"},
           {"generate " + atlas + " --ids 2,,3", 2, "--ids"},
           {"verify " + atlas + " >/dev/full", 1, "standard output"},
           {"inspect " + atlas + " --plan --device cpu", 1, "--device cpu"},
           {"generate " + atlas + " --ids 2 --device tpu", 2, "--device"},
           {"generate /none --ids 2", 1, "not_found"},
           {"generate " + atlas + " --device cpu --ids 2,8192", 1, "8192"},
           {"generate " + atlas + " --device cpu --context 2 --ids 2,3,4", 1, "context_exceeded"},
           {"generate " + atlas + " --adapter nonesuch --ids 2", 1, "no_adapter"},
           {"bench " + atlas + " --depths 16,x", 2, "--depths"},
           {"bench " + atlas + " --prefill 0", 2, "--prefill"},
           {"bench " + atlas + " --repeat 0", 2, "--repeat"},
           {"bench /none", 1, "not_found"},
           {"bench " + atlas + " --json /none/file", 1, "/none"},
           {"profile " + atlas + " --tokens 0", 2, "--tokens"},
           {"profile " + atlas + " --device cpu", 1, "--device cpu"},
           {"profile " + atlas + " --json '" + atlas_folder + "/manifest.json'", 1,
            "already_exists"},
           {"profile " + atlas + " --json same --trace ./same", 1, "--trace ./same: expected"},
           {"profile /none", 1, "not_found"},
           {"export /none -o /tmp/none", 1, "not_found"},
           {"export " + atlas + " -o /tmp/none", 1, "config.json"},
           {"export " + atlas + " -o " + atlas + "/out", 1, "expected an output outside"},
           {"export /none -o x --published $(printf 'a\\377@0')", 1, "expected UTF-8"},
           {"export " + atlas + " -o x --tensor a=f16 --tensor a=q8_0", 1, "--tensor a: expected"},
           {"devices $(printf 'x\\033[31m')", 2, "x\\x1b[31m"},
           {"verify /none", 1, "not_found"},
           {"inspect /none", 1, "not_found"},
           {"inspect " + atlas + " --plan --limits /none", 1, "not_found"},
           {"inspect " + atlas + " --limits /none", 2, "--plan"},
           {"inspect " + atlas + " --plan --census --limits /none", 2, "--census"},
           {"devices --limits nonesuch", 1, "no_adapter"},
           {"tokenize " + atlas + " --ids 9999", 1, "9999"}}) {
    const Outcome outcome = tandem(c.arguments);
    EXPECT_EQ(outcome.status, c.status) << c.arguments << "\n" << outcome.err;
    EXPECT_TRUE(contains(outcome.err, c.error)) << c.arguments << "\n" << outcome.err;
  }
}

TEST(Cli, LimitsAreReadBeforeAnythingIsPrinted) {
  const Outcome outcome = tandem("inspect '" + atlas_folder + "' --plan --limits /none");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.out, "");
}

// It would no longer be what was published.
TEST(Cli, NoOutputIsMadeInsideAnArtifact) {
  const TemporaryFolder folder;
  const std::string copy = (folder.path() / "atlas").string(), out = "'" + copy + "/out'";
  std::filesystem::copy(atlas_folder, copy);
  const std::string artifact = "'" + copy + "' ";
  for (const std::string& command :
       {"generate " + artifact + "--device cpu --ids 2 --trace " + out,
        "logits " + artifact + "--device cpu --ids 2 -o " + out,
        "bench " + artifact + "--device cpu --json " + out, "profile " + artifact + "--json " + out,
        "profile " + artifact + "--trace " + out, "synthesize --geometry e2b -o " + out,
        "chat " + artifact + "--device cpu <<X\n/save " + copy + "/out\nX\n"}) {
    const Outcome outcome = tandem(command);
    EXPECT_EQ(outcome.status, 1) << command << outcome.out;
    EXPECT_TRUE(contains(outcome.err, "which is an artifact")) << command << outcome.err;
  }
  EXPECT_EQ(tandem("verify '" + copy + "'").status, 0);
}

TEST(Cli, EveryCommandHasHelp) {
  for (const char* command : {"generate", "logits", "score", "tokenize", "export", "synthesize",
                              "inspect", "verify", "devices", "bench", "profile"}) {
    const Outcome outcome = tandem(std::string(command) + " --help");
    EXPECT_EQ(outcome.status, 0) << command;
    EXPECT_TRUE(contains(outcome.out, "Usage")) << command;
  }
}

}  // namespace
}  // namespace tandem::test
