// Attached assistants: with their plain artifact they are what a direct export is; without it, or
// with another, they are refused.
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "artifact/artifact.h"
#include "artifact/verify.h"
#include "base/json.h"
#include "changes.h"
#include "exporter/export.h"
#include "support/checkpoint.h"
#include "support/refusal.h"

namespace tandem::test {
namespace {

namespace fs = std::filesystem;
using artifact::Artifact;
using artifact::Manifest;
using artifact::verify;
using artifact::View;

struct Exports {
  TemporaryFolder folder;
  fs::path path(const char* name) const { return folder.path() / name; }
};

// "plain", "attached" to it, both as "direct", and "other", a plain one with another seed.
const Exports& exports() {
  static const Exports exports;
  static const bool made = [] {
    const TinyShape shape{.layers = 2, .kv_shared = 0};
    const std::string config = tiny_assistant_config(shape);
    const auto path = [](const char* name) { return exports.path(name); };
    write_checkpoint(path("target"), tiny_config(shape));
    write_checkpoint(path("another"), tiny_config(shape), CheckpointOptions{.seed = 2});
    write_checkpoint(path("assistant"), config, random_assistant_tensors(config));
    exporter::ExportOptions options;
    options.weights.shard_bytes = 60'000;
    EXPECT_TRUE(accepted(exporter::export_checkpoint(path("target"), path("plain"), options)));
    EXPECT_TRUE(accepted(exporter::export_checkpoint(path("another"), path("other"), options)));
    EXPECT_TRUE(accepted(
        exporter::export_assistant(path("assistant"), path("plain"), path("attached"), options)));
    options.assistant = path("assistant");
    EXPECT_TRUE(accepted(exporter::export_checkpoint(path("target"), path("direct"), options)));
    return true;
  }();
  EXPECT_TRUE(made);
  return exports;
}

fs::path at(const char* name) { return exports().path(name); }

// Keeps what a loader is given, plane by plane.
class Planes : public artifact::WeightSink {
 public:
  Result<void> write(std::string_view plane, uint64_t, std::span<const std::byte> bytes) override {
    content[std::string(plane)].append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return {};
  }
  std::map<std::string, std::string> content;
};

std::map<std::string, std::string> load_all(const Result<Artifact>& opened) {
  Planes planes;
  if (!opened) return {};
  EXPECT_TRUE(accepted(load(*opened, planes)));
  return planes.content;
}

class AttachedTest : public ::testing::Test {
 protected:
  fs::path copy(const char* name) {
    const fs::path path = folder_.path() / name;
    fs::remove_all(path);
    fs::copy(at(name), path, fs::copy_options::recursive);
    return path;
  }

  // A copy of the attached artifact whose manifest was changed, and its receipt with it.
  fs::path forge(const std::function<void(Manifest&)>& change) {
    const fs::path path = copy("attached");
    auto manifest = artifact::read_manifest(read_file(path / "manifest.json"));
    auto receipt = artifact::read_receipt(read_file(path / "receipt.json"));
    EXPECT_TRUE(accepted(manifest) && accepted(receipt));
    change(*manifest);
    for (artifact::BoundFile& source : receipt->assistant->sources) {
      if (source.file == "tokenizer.json") source.sha256 = manifest->tokenizer_source;
    }
    manifest->mtp->origin = origin_digest(*receipt->assistant);
    receipt->recipe = manifest->recipe;
    receipt->files = bound_files(*manifest);
    receipt->shards = bound_shards(*manifest);
    write_file(path / "manifest.json", manifest_text(*manifest));
    write_file(path / "receipt.json", receipt_text(*receipt));
    return path;
  }

  TemporaryFolder folder_;
};

TEST_F(AttachedTest, WithItsPlainArtifactItIsTheDirectOne) {
  const auto attached = Artifact::open(at("plain"), View::mtp, at("attached"));
  const auto direct = Artifact::open(at("direct"), View::mtp);
  ASSERT_TRUE(accepted(attached));
  ASSERT_TRUE(accepted(direct));
  const auto planes = load_all(attached);
  EXPECT_FALSE(planes.empty());
  EXPECT_EQ(planes, load_all(direct));
  EXPECT_EQ(attached->plan().bytes, direct->plan().bytes);
  EXPECT_EQ(attached->tokenizer(), direct->tokenizer());
  Manifest manifest = attached->manifest();
  EXPECT_EQ(manifest.attached_to, Artifact::open(at("plain"))->digest());
  manifest.attached_to.reset();
  EXPECT_EQ(manifest_text(manifest), manifest_text(direct->manifest()));
  EXPECT_EQ(attached->receipt().assistant->sources, direct->receipt().assistant->sources);
  EXPECT_EQ(attached->receipt().target->sources, direct->receipt().target->sources);
  // The plain view is what it is without the assistant.
  EXPECT_EQ(load_all(Artifact::open(at("plain"), View::plain, at("attached"))),
            load_all(Artifact::open(at("plain"))));
}

TEST_F(AttachedTest, ItsFolderHoldsTheAssistantOnly) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(at("attached")))
    names.insert(entry.path().filename().string());
  const auto direct = Artifact::open(at("direct"));
  ASSERT_TRUE(accepted(direct));
  std::set<std::string> expected = {"manifest.json", "receipt.json"};
  for (const artifact::Shard& shard : direct->manifest().shards) {
    if (shard.role != "assistant") continue;
    expected.insert(shard.file);
    EXPECT_EQ(read_file(at("attached") / shard.file), read_file(at("direct") / shard.file));
  }
  EXPECT_EQ(names, expected);
  const auto verified = verify(at("plain"), {}, at("attached"));
  ASSERT_TRUE(accepted(verified));
  EXPECT_EQ(verified->files, verify(at("plain"))->files + expected.size());
}

TEST_F(AttachedTest, LoadingNeedsBoth) {
  const std::string plain = Artifact::open(at("plain"))->digest().hex();
  EXPECT_TRUE(refused(Artifact::open(at("attached"), View::mtp), ErrorCode::invalid_argument,
                      {at("attached").string(), plain, "--assistant"}));
  EXPECT_TRUE(refused(verify(at("attached")), ErrorCode::invalid_argument, {plain}));
  EXPECT_TRUE(refused(Artifact::open(at("plain"), View::mtp), ErrorCode::not_found, {"view mtp"}));
  EXPECT_TRUE(refused(Artifact::open(at("plain"), View::mtp, at("direct")), ErrorCode::bad_value,
                      {at("direct").string(), "attached_to", plain, "null"}));
  EXPECT_TRUE(refused(Artifact::open(at("direct"), View::mtp, at("attached")), ErrorCode::bad_value,
                      {plain, "an assistant of its own"}));
  EXPECT_TRUE(refused(Artifact::open(at("plain"), View::mtp, at("none")), ErrorCode::not_found));
}

TEST_F(AttachedTest, AnotherPlainArtifactIsRefusedWithBothDigests) {
  const std::string plain = Artifact::open(at("plain"))->digest().hex(),
                    other = Artifact::open(at("other"))->digest().hex();
  EXPECT_TRUE(refused(Artifact::open(at("other"), View::mtp, at("attached")), ErrorCode::bad_value,
                      {plain, other, "/shards/0/digest"}));
}

TEST_F(AttachedTest, EveryDifferenceIsRefusedWithBothValues) {
  struct Case {
    const char* why;
    std::function<void(Manifest&)> change;
    std::vector<std::string> words;
  };
  const Digest zero, other = sha256("another");
  const std::string tokenizer =
      Artifact::open(at("plain"))->manifest().tokenizer_source.hex().substr(0, 20);
  for (const Case& c :
       std::vector<Case>{{"digest",
                          [&](auto& m) { m.attached_to = zero; },
                          {zero.hex(), Artifact::open(at("plain"))->digest().hex()}},
                         {"geometry",
                          [](auto& m) { m.config.softcap = 15; },
                          {"/config/final_logit_softcapping: 15.0 there, 30.0 here"}},
                         {"tokenizer",
                          [&](auto& m) { m.tokenizer_source = other; },
                          {"/tokenizer_source_sha256", other.hex().substr(0, 20), tokenizer}},
                         {"tokenizer's table",
                          [](auto& m) { m.tokenizer.bytes = 1; },
                          {"/tokenizer/bytes: 1 there"}},
                         {"recipe",
                          [](auto& m) { m.recipe.table = spec::WeightType::f32; },
                          {"/recipe/table: \"f32\" there, \"q8_0\" here"}},
                         {"context",
                          [](auto& m) { m.context_bound = 128; },
                          {"/context_bound: 128 there, 256 here"}},
                         {"shards",
                          [](auto& m) { m.shards[0].pieces[0] = sha256("x"); },
                          {"/shards/0/pieces/0"}}}) {
    SCOPED_TRACE(c.why);
    const auto opened = Artifact::open(at("plain"), View::mtp, forge(c.change));
    for (const std::string& word : c.words)
      EXPECT_TRUE(refused(opened, ErrorCode::bad_value, {word}));
  }
  EXPECT_TRUE(accepted(Artifact::open(at("plain"), View::mtp, forge([](auto&) {}))));
}

TEST_F(AttachedTest, OneFieldOfEitherFile) {
  const fs::path path = copy("attached");
  for (const char* file : {"manifest.json", "receipt.json"}) {
    const std::string pristine = read_file(path / file);
    for_each_change(Json::parse(pristine), [&](const Json& changed, const std::string& what) {
      write_file(path / file, canonical_json(changed));
      EXPECT_FALSE(Artifact::open(at("plain"), std::nullopt, path)) << file << " " << what;
    });
    write_file(path / file, pristine);
  }
  EXPECT_TRUE(accepted(verify(at("plain"), {}, path)));
}

TEST_F(AttachedTest, DamageIsFound) {
  const fs::path path = copy("attached");
  for (const auto& entry : fs::directory_iterator(at("attached"))) {
    const std::string name = entry.path().filename().string(), bytes = read_file(entry.path());
    for (const size_t place : {size_t{0}, bytes.size() / 2, bytes.size() - 1}) {
      std::string changed = bytes;
      changed[place] = static_cast<char>(changed[place] ^ 1);
      write_file(path / name, changed);
      EXPECT_FALSE(verify(at("plain"), {}, path)) << name << " byte " << place;
    }
    fs::remove(path / name);
    EXPECT_TRUE(refused(verify(at("plain"), {}, path), ErrorCode::not_found, {name}));
    write_file(path / name, bytes);
  }
  write_file(path / "notes.txt", "mine");
  EXPECT_TRUE(refused(verify(at("plain"), {}, path), ErrorCode::malformed_artifact, {"notes.txt"}));
}

}  // namespace
}  // namespace tandem::test
