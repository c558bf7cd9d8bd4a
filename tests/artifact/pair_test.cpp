// Artifacts of a target with its assistant: what each view loads, and every fact that the manifest
// certifies about the pair, broken once.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>

#include "artifact/artifact.h"
#include "artifact/token_ordering.h"
#include "artifact/verify.h"
#include "base/json.h"
#include "exporter/export.h"
#include "support/checkpoint.h"
#include "support/refusal.h"

namespace tandem::test {
namespace {

namespace fs = std::filesystem;
using artifact::Artifact;
using artifact::load;
using artifact::Manifest;
using artifact::verify;
using artifact::View;

const fs::path& exported_pair() {
  static const TemporaryFolder folder;
  static const fs::path path = [] {
    const TinyShape shape{.layers = 2, .kv_shared = 0};
    const std::string config = tiny_assistant_config(shape);
    write_checkpoint(folder.path() / "target", tiny_config(shape));
    write_checkpoint(folder.path() / "assistant", config, random_assistant_tensors(config));
    exporter::ExportOptions options;
    options.assistant = folder.path() / "assistant";
    EXPECT_TRUE(accepted(exporter::export_checkpoint(folder.path() / "target",
                                                     folder.path() / "artifact", options)));
    return folder.path() / "artifact";
  }();
  return path;
}

class PlaneNames : public artifact::WeightSink {
 public:
  Result<void> write(std::string_view plane, uint64_t, std::span<const std::byte>) override {
    names.emplace(plane);
    return {};
  }
  std::set<std::string> names;
};

class PairTest : public ::testing::Test {
 protected:
  fs::path copy() {
    const fs::path path = folder_.path() / "artifact";
    fs::remove_all(path);
    fs::copy(exported_pair(), path, fs::copy_options::recursive);
    return path;
  }

  // A manifest with a receipt that agrees with it.
  void write_manifest(const fs::path& folder, const Manifest& manifest) {
    auto receipt = artifact::read_receipt(read_file(folder / "receipt.json"));
    ASSERT_TRUE(accepted(receipt));
    receipt->recipe = manifest.recipe;
    receipt->files = bound_files(manifest);
    receipt->shards = bound_shards(manifest);
    write_file(folder / "manifest.json", manifest_text(manifest));
    write_file(folder / "receipt.json", receipt_text(*receipt));
  }

  // Changes the token ordering in the shard, and all hashes but the certificate's with it.
  fs::path forge_ordering(const std::function<void(std::span<uint32_t>)>& change) {
    const fs::path folder = copy();
    Manifest manifest = read_manifest();
    for (const artifact::TensorEntry& tensor : manifest.tensors) {
      if (tensor.name != "assistant.token_ordering") continue;
      artifact::Shard& shard = manifest.shards[tensor.planes[0].shard];
      std::string bytes = read_file(folder / shard.file);
      std::vector<uint32_t> ids(tensor.columns);
      char* place = &bytes[tensor.planes[0].offset];
      std::memcpy(ids.data(), place, ids.size() * sizeof(uint32_t));
      change(ids);
      std::memcpy(place, ids.data(), ids.size() * sizeof(uint32_t));
      write_file(folder / shard.file, bytes);
      EXPECT_EQ(shard.pieces.size(), 1u);
      shard.pieces[0] = sha256(bytes);
    }
    write_manifest(folder, manifest);
    return folder;
  }

  static Manifest read_manifest() {
    auto manifest = artifact::read_manifest(read_file(exported_pair() / "manifest.json"));
    EXPECT_TRUE(accepted(manifest));
    return manifest.value_or(Manifest{});
  }

  TemporaryFolder folder_;
};

TEST_F(PairTest, EachViewLoadsItsOwn) {
  EXPECT_TRUE(accepted(verify(exported_pair())));
  std::map<View, std::set<std::string>> planes;
  for (const View view : {View::plain, View::mtp}) {
    const auto opened = Artifact::open(exported_pair(), view);
    ASSERT_TRUE(accepted(opened));
    PlaneNames sink;
    ASSERT_TRUE(accepted(load(*opened, sink)));
    planes[view] = sink.names;
  }
  for (const std::string& plane : planes[View::plain]) {
    EXPECT_FALSE(spec::is_assistants(plane)) << plane;
    EXPECT_TRUE(planes[View::mtp].erase(plane)) << plane;
  }
  EXPECT_FALSE(planes[View::plain].empty());
  EXPECT_TRUE(planes[View::mtp].contains("assistant.token_ordering.values"));
  for (const std::string& plane : planes[View::mtp])
    EXPECT_TRUE(spec::is_assistants(plane)) << plane;
}

TEST_F(PairTest, ADamagedAssistantHarmsOnlyItsView) {
  const fs::path folder = copy();
  const auto& shards = read_manifest().shards;
  ASSERT_EQ(shards.back().role, "assistant");
  std::string bytes = read_file(folder / shards.back().file);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  write_file(folder / shards.back().file, bytes);
  const auto plain = Artifact::open(folder), mtp = Artifact::open(folder, View::mtp);
  ASSERT_TRUE(accepted(plain));
  ASSERT_TRUE(accepted(mtp));
  PlaneNames sink;
  EXPECT_TRUE(accepted(load(*plain, sink)));
  EXPECT_TRUE(refused(load(*mtp, sink), ErrorCode::hash_mismatch, {shards.back().file}));
  EXPECT_TRUE(refused(verify(folder), ErrorCode::hash_mismatch, {shards.back().file}));
}

TEST_F(PairTest, AForgedOrderingDoesNotReachTheSink) {
  const auto refuse = [&](const fs::path& folder, ErrorCode code,
                          std::initializer_list<std::string_view> words) {
    const auto opened = Artifact::open(folder, View::mtp);
    ASSERT_TRUE(accepted(opened));
    PlaneNames sink;
    EXPECT_TRUE(refused(load(*opened, sink), code, words));
    EXPECT_FALSE(code == ErrorCode::bad_value &&
                 sink.names.contains(std::string(artifact::token_ordering_plane)));
  };
  refuse(forge_ordering([](auto ids) { ids[5] = ids[4]; }), ErrorCode::bad_value,
         {"token_ordering[5]", "507 again"});
  refuse(forge_ordering([](auto ids) { ids[9] = 512; }), ErrorCode::bad_value,
         {"token_ordering[9]", "512"});
  refuse(forge_ordering([](auto ids) { ids[511] = UINT32_MAX; }), ErrorCode::bad_value,
         {"token_ordering[511]", "4294967295"});
  // A permutation, but another than the certified one.
  refuse(forge_ordering([](auto ids) { std::swap(ids[0], ids[1]); }), ErrorCode::hash_mismatch,
         {"token_ordering_sha256"});
  EXPECT_TRUE(accepted(verify(forge_ordering([](auto) {}))));
}

TEST(TokenOrderingCheck, CountsAllTokensOnce) {
  const uint32_t ids[] = {2, 0, 1};
  const auto bytes = std::as_bytes(std::span(ids));
  artifact::TokenOrderingCheck whole(3), parts(3), short_one(3);
  EXPECT_TRUE(accepted(whole.add(bytes)));
  EXPECT_TRUE(accepted(parts.add(bytes.first(4))));
  EXPECT_TRUE(accepted(parts.add(bytes.subspan(4))));
  const auto digest = whole.finish();
  ASSERT_TRUE(accepted(digest));
  EXPECT_EQ(*digest, sha256(bytes));
  EXPECT_EQ(*parts.finish(), *digest);
  EXPECT_TRUE(accepted(short_one.add(bytes.first(8))));
  EXPECT_TRUE(refused(short_one.finish(), ErrorCode::bad_value, {"3 tokens", "found 2"}));
  artifact::TokenOrderingCheck longer(3);
  EXPECT_TRUE(accepted(longer.add(bytes)));
  EXPECT_TRUE(refused(longer.add(bytes.first(4)), ErrorCode::bad_value, {"[3]", "2 again"}));
}

TEST_F(PairTest, EveryCertifiedFactBrokenOnce) {
  struct Case {
    const char* pointer;
    Json value;  // null: the key is removed
    ErrorCode code;
    std::vector<std::string> words;
  };
  const ErrorCode bad = ErrorCode::bad_value;
  const std::string zeros(64, '0');
  const Json json = Json::parse(read_file(exported_pair() / "manifest.json"));
  for (const Case& c : std::vector<Case>{
           {"/donors/sliding_attention/layer", 1, bad, {"donors"}},
           {"/donors/sliding_attention/kv_heads", 1, bad, {"donors"}},
           {"/donors/full_attention/head_dim", 16, bad, {"donors"}},
           {"/donors/full_attention", nullptr, bad, {"donors"}},
           {"/window", 7, bad, {"window", "8", "7"}},
           {"/embedding_scale", 8.5, bad, {"embedding_scale", "8.0", "8.5"}},
           {"/ordered_embeddings/centroids", 32, bad, {"ordered_embeddings"}},
           {"/ordered_embeddings/tokens_per_centroid", 16, bad, {"ordered_embeddings"}},
           {"/ordered_embeddings/top_k", 4, bad, {"ordered_embeddings"}},
           {"/ordered_embeddings/token_ordering_sha256", "x", bad, {"token_ordering_sha256"}},
           {"/ordered_embeddings/more", 1, bad, {"ordered_embeddings"}},
           {"/methods", Json{"decode"}, bad, {"methods"}},
           {"/config/backbone_hidden_size", 32, bad, {"backbone_hidden_size", "64", "32"}},
           {"/config/num_centroids", 24, bad, {"num_centroids", "24"}},
           {"/config/num_centroids", 32, bad, {"ordered_embeddings"}},
           {"/config/text_config/vocab_size", 1024, bad, {"vocab_size", "512", "1024"}},
           {"/config/text_config/sliding_window", 4, bad, {"window", "4"}},
           {"/config/text_config/sliding_window", 9, ErrorCode::unsupported, {"9", "8"}},
           {"/config/text_config/num_kv_shared_layers", 1, ErrorCode::unsupported, {"found 1"}},
           {"/config/use_ordered_embeddings", false, bad, {"ordered_embeddings"}},
           {"/config/zzz", 1, ErrorCode::unknown_key, {"zzz"}},
           {"/zzz", 1, ErrorCode::unknown_key, {"zzz"}},
           {"/window", nullptr, ErrorCode::missing_key, {"window"}},
           {"/donors", nullptr, ErrorCode::missing_key, {"donors"}},
           {"/config", nullptr, ErrorCode::missing_key, {"config"}},
           {"/ordered_embeddings", nullptr, ErrorCode::missing_key, {"ordered_embeddings"}}}) {
    Json changed = json;
    const Json::json_pointer place("/views/mtp" + std::string(c.pointer));
    changed[place] = c.value;
    if (c.value.is_null()) changed[place.parent_pointer()].erase(place.back());
    ASSERT_NE(changed, json) << c.pointer;
    const auto result = artifact::read_manifest(canonical_json(changed));
    for (const std::string& word : c.words)
      EXPECT_TRUE(refused(result, c.code, {"manifest.json", word})) << c.pointer;
  }
  Json changed = json;
  changed["views"]["other"] = Json::object();
  EXPECT_TRUE(refused(artifact::read_manifest(canonical_json(changed)), ErrorCode::unknown_key,
                      {"views.other"}));
  changed = json;
  changed["views"].erase("plain");
  EXPECT_TRUE(refused(artifact::read_manifest(canonical_json(changed)), ErrorCode::missing_key,
                      {"views.plain"}));
}

TEST_F(PairTest, TheReceiptMustSpeakOfTheSameAssistant) {
  const fs::path folder = copy();
  const auto pristine = artifact::read_receipt(read_file(folder / "receipt.json"));
  ASSERT_TRUE(accepted(pristine));
  artifact::Receipt receipt = *pristine;
  receipt.assistant.reset();
  write_file(folder / "receipt.json", receipt_text(receipt));
  EXPECT_TRUE(refused(Artifact::open(folder), ErrorCode::malformed_artifact, {"assistant"}));
  receipt = *pristine;
  receipt.assistant->config = sha256(std::string_view("another"));
  write_file(folder / "receipt.json", receipt_text(receipt));
  EXPECT_TRUE(refused(Artifact::open(folder), ErrorCode::malformed_artifact, {"assistant"}));
  receipt = *pristine;
  receipt.assistant->sources.pop_back();
  write_file(folder / "receipt.json", receipt_text(receipt));
  EXPECT_TRUE(refused(Artifact::open(folder), ErrorCode::malformed_artifact, {"assistant"}));
  write_file(folder / "receipt.json", receipt_text(*pristine));
  EXPECT_TRUE(accepted(Artifact::open(folder)));
}

TEST_F(PairTest, ContradictionsOfThePlanAreNamed) {
  struct Case {
    const char* why;
    std::function<void(Manifest&)> make;
    std::vector<std::string> words;
  };
  const auto last = [](Manifest& m) -> artifact::TensorEntry& { return m.tensors.back(); };
  const Case cases[] = {
      {"no view, but its tensors",
       [](auto& m) { m.mtp.reset(), m.recipe.overrides.clear(); },
       {"tensors"}},
      {"a view without its tensors",
       [](auto& m) {
         std::erase_if(m.tensors, [](auto& t) { return spec::is_assistants(t.name); });
       },
       {"tensors"}},
      {"the assistant in a shard of the target",
       [](auto& m) { m.shards.back().role = "target"; },
       {"role assistant", "role target"}},
      {"the target in a shard of the assistant",
       [](auto& m) { m.shards[0].role = "assistant"; },
       {"embedding", "role target", "role assistant"}},
      {"a shard that it shares with the target",
       [&](auto& m) { last(m).planes[0].shard = 0; },
       {"role assistant"}},
      {"another role", [](auto& m) { m.shards.back().role = "drafter"; }, {"drafter"}},
      {"ids as floats",
       [](auto& m) { m.recipe.overrides["assistant.token_ordering"] = spec::WeightType::f32; },
       {"overrides.assistant.token_ordering", "u32", "f32"}},
      {"weights as ids", [](auto& m) { m.recipe.matrix = spec::WeightType::u32; }, {"u32"}},
  };
  const Manifest pristine = read_manifest();
  for (const View view : {View::plain, View::mtp})
    EXPECT_TRUE(accepted(make_load_plan(pristine, view)));
  for (const Case& c : cases) {
    SCOPED_TRACE(c.why);
    Manifest manifest = pristine;
    c.make(manifest);
    for (const std::string& word : c.words)
      EXPECT_TRUE(refused(make_load_plan(manifest), ErrorCode::malformed_artifact, {word}));
  }
  Manifest plain = pristine;
  plain.mtp.reset();
  EXPECT_TRUE(refused(make_load_plan(plain, View::mtp), ErrorCode::not_found, {"view mtp"}));
}

}  // namespace
}  // namespace tandem::test
