// Every file and every field of an artifact, changed in turn: all changes are refused.
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <set>

#include "artifact/receipt.h"
#include "artifact/verify.h"
#include "base/json.h"
#include "changes.h"
#include "fixture.h"

namespace tandem::test {
namespace {

namespace fs = std::filesystem;
using artifact::Artifact;
using artifact::verify;

class MutationTest : public ArtifactTest {};

std::vector<std::string> file_names(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder))
    names.push_back(entry.path().filename().string());
  return names;
}

TEST_F(MutationTest, AnUntouchedCopyIsAccepted) {
  for (const bool large : {false, true}) {
    const auto verified = verify(copy(large));
    ASSERT_TRUE(accepted(verified));
    EXPECT_EQ(verified->files, file_names(exported(large)).size());
  }
  EXPECT_EQ(file_names(exported(false)).size(), 8u);
}

TEST_F(MutationTest, OneByteInEveryFile) {
  const fs::path folder = copy();
  for (const std::string& file : file_names(folder)) {
    const std::string bytes = read_file(folder / file);
    // At the ends, and at places all over the file.
    for (size_t place = 0; place < bytes.size(); place += std::max<size_t>(1, bytes.size() / 23)) {
      for (const char change : {'\x01', '\x80'}) {
        std::string changed = bytes;
        changed[place] = static_cast<char>(changed[place] ^ change);
        write_file(folder / file, changed);
        EXPECT_FALSE(verify(folder)) << file << " byte " << place;
      }
    }
    std::string changed = bytes;
    changed.back() = static_cast<char>(changed.back() ^ 1);
    write_file(folder / file, changed);
    EXPECT_FALSE(verify(folder)) << file << ", last byte";
    write_file(folder / file, bytes);
  }
  EXPECT_TRUE(accepted(verify(folder)));
}

TEST_F(MutationTest, OneLengthInEveryFile) {
  const fs::path folder = copy();
  for (const std::string& file : file_names(folder)) {
    const std::string bytes = read_file(folder / file);
    const std::string longer[] = {bytes + '\0',
                                  bytes + ' ',
                                  bytes + '\n',
                                  bytes.substr(0, bytes.size() - 1),
                                  bytes.substr(0, bytes.size() / 2),
                                  bytes.substr(1),
                                  std::string()};
    for (const std::string& changed : longer) {
      write_file(folder / file, changed);
      const auto result = Artifact::open(folder);
      EXPECT_FALSE(result) << file << " of " << changed.size() << " bytes, not " << bytes.size();
    }
    write_file(folder / file, bytes);
  }
  EXPECT_TRUE(accepted(verify(folder)));
}

TEST_F(MutationTest, FilesMissingLinkedOrAdded) {
  const fs::path folder = copy();
  const fs::path aside = folder_.path() / "aside";
  for (const std::string& file : file_names(folder)) {
    fs::rename(folder / file, aside);
    EXPECT_TRUE(refused(Artifact::open(folder), ErrorCode::not_found, {file}));
    fs::create_symlink(aside, folder / file);
    EXPECT_TRUE(refused(Artifact::open(folder), ErrorCode::unsafe_path, {file}));
    fs::remove(folder / file);
    fs::create_directory(folder / file);
    EXPECT_FALSE(Artifact::open(folder)) << file;
    fs::remove(folder / file);
    fs::rename(aside, folder / file);
  }
  write_file(folder / "notes.txt", "mine");
  EXPECT_TRUE(refused(verify(folder), ErrorCode::malformed_artifact, {"notes.txt"}));
  fs::remove(folder / "notes.txt");
  EXPECT_TRUE(accepted(verify(folder)));
}

// Checked without the weights, which do not change here: thousands of changes stay quick.
TEST_F(MutationTest, OneFieldOfTheManifest) {
  const fs::path folder = copy();
  const Json json = Json::parse(read_file(folder / "manifest.json"));
  size_t changes = 0;
  for_each_change(json, [&](const Json& changed, const std::string& what) {
    write_file(folder / "manifest.json", canonical_json(changed));
    EXPECT_FALSE(Artifact::open(folder)) << what;
    ++changes;
  });
  EXPECT_GT(changes, 1000u);
}

TEST_F(MutationTest, OneFieldOfTheReceipt) {
  const fs::path folder = copy();
  const Json json = Json::parse(read_file(folder / "receipt.json"));
  size_t changes = 0;
  for_each_change(json, [&](const Json& changed, const std::string& what) {
    write_file(folder / "receipt.json", canonical_json(changed));
    EXPECT_FALSE(Artifact::open(folder)) << what;
    ++changes;
  });
  EXPECT_GT(changes, 100u);
}

// Fields whose value no other file repeats: another value makes another, valid artifact. `config`
// is such as long as the shapes stay the same.
bool is_free(const std::string& what) {
  for (const char* field : {"/config/", "/input_bound ", "/context_bound "}) {
    if (what.starts_with(field)) return true;
  }
  return false;
}

// The receipt is forged to agree with the changed manifest, so that the manifest's own
// contradictions must show.
TEST_F(MutationTest, OneFieldOfTheManifestWithAForgedReceipt) {
  const fs::path folder = copy();
  const Json json = Json::parse(read_file(folder / "manifest.json"));
  auto receipt = artifact::read_receipt(read_file(folder / "receipt.json"));
  ASSERT_TRUE(accepted(receipt));
  std::set<ErrorCode> codes;
  size_t readable = 0;
  for_each_change(json, [&](const Json& changed, const std::string& what) {
    auto manifest = artifact::read_manifest(canonical_json(changed));
    if (!manifest) {
      codes.insert(manifest.error().code);
      return;
    }
    ++readable;
    if (what.starts_with("/origin_sha256")) return;  // it is made anew
    receipt->target->config = sha256(spec::canonical_config(manifest->config));
    manifest->origin = origin_digest(*receipt->target);
    receipt->recipe = manifest->recipe;
    receipt->files = bound_files(*manifest);
    receipt->shards = bound_shards(*manifest);
    write_file(folder / "manifest.json", manifest_text(*manifest));
    write_file(folder / "receipt.json", receipt_text(*receipt));
    const auto result = verify(folder);
    EXPECT_TRUE(!result || is_free(what)) << what;
    if (!result) codes.insert(result.error().code);
  });
  EXPECT_GT(readable, 300u);
  for (const ErrorCode code :
       {ErrorCode::unknown_key, ErrorCode::missing_key, ErrorCode::wrong_type, ErrorCode::bad_value,
        ErrorCode::malformed_artifact, ErrorCode::hash_mismatch}) {
    EXPECT_TRUE(codes.contains(code)) << name(code);
  }
}

TEST_F(MutationTest, OtherFormsOfTheSameJson) {
  const fs::path folder = copy();
  for (const char* file : {"manifest.json", "receipt.json"}) {
    const std::string text = read_file(folder / file);
    for (const std::string& other :
         {Json::parse(text).dump(), " " + text, text + "\n", "{" + text.substr(1) + "{}"}) {
      write_file(folder / file, other);
      EXPECT_FALSE(Artifact::open(folder)) << file;
    }
    write_file(folder / file, text);
  }
  EXPECT_TRUE(accepted(Artifact::open(folder)));
}

struct Contradiction {
  const char* why;
  std::function<void(artifact::Manifest&)> make;
  std::vector<std::string> words;
};

TEST(LoadPlan, ContradictionsAreNamed) {
  const auto pristine = artifact::read_manifest(read_file(exported(false) / "manifest.json"));
  ASSERT_TRUE(accepted(pristine));
  ASSERT_TRUE(accepted(make_load_plan(*pristine)));
  using spec::WeightType;
  const Contradiction cases[] = {
      {"missing tensor", [](auto& m) { m.tensors.pop_back(); }, {"tensors"}},
      {"extra tensor", [](auto& m) { m.tensors.push_back(m.tensors.back()); }, {"tensors"}},
      {"misnamed tensor",
       [](auto& m) { m.tensors[4].name = "norm"; },
       {"expected final_norm, found norm"}},
      {"swapped tensors",
       [](auto& m) { std::swap(m.tensors[4], m.tensors[5]); },
       {"expected final_norm"}},
      {"transposed",
       [](auto& m) { std::swap(m.tensors[0].rows, m.tensors[0].columns); },
       {"embedding", "[512, 64]"}},
      {"type against the recipe",
       [](auto& m) { m.tensors[0].type = WeightType::q4_0; },
       {"embedding", "q8_0", "q4_0"}},
      {"recipe against types", [](auto& m) { m.recipe.matrix = WeightType::f16; }, {"f16", "q4_0"}},
      {"vectors in f16", [](auto& m) { m.recipe.vector = WeightType::f16; }, {"recipe.vector"}},
      {"needless override",
       [](auto& m) { m.recipe.overrides["embedding"] = WeightType::q8_0; },
       {"overrides.embedding"}},
      {"override of a vector",
       [](auto& m) { m.recipe.overrides["final_norm"] = WeightType::f16; },
       {"overrides.final_norm"}},
      {"override of nothing",
       [](auto& m) { m.recipe.overrides["x"] = WeightType::f16; },
       {"overrides.x"}},
      {"missing plane",
       [](auto& m) { m.tensors[0].planes.pop_back(); },
       {"embedding", "expected 2 planes"}},
      {"misnamed plane",
       [](auto& m) { m.tensors[0].planes[0].name = "values"; },
       {"embedding", "quants"}},
      {"shard that is not there",
       [](auto& m) { m.tensors[0].planes[0].shard = 9; },
       {"embedding", "quants", "3 shards", "shard 9"}},
      {"straddling",
       [](auto& m) { m.tensors[0].planes[1].shard = 1; },
       {"embedding", "scales", "shard 0", "found it in 1"}},
      {"overlap",
       [](auto& m) { m.tensors[0].planes[1].offset -= 16; },
       {"embedding.scales", "overlap"}},
      {"gap", [](auto& m) { m.tensors[0].planes[1].offset += 16; }, {"embedding.scales"}},
      {"in the header", [](auto& m) { m.tensors[0].planes[0].offset = 0; }, {"embedding.quants"}},
      {"longer shard",
       [](auto& m) { m.shards[0].bytes += 1; },
       {"shard-00000.safetensors", "bytes"}},
      {"shorter shard",
       [](auto& m) { m.shards[0].bytes -= 1; },
       {"shard-00000.safetensors", "bytes"}},
      {"missing piece",
       [](auto& m) { m.shards[0].pieces.clear(); },
       {"shard-00000.safetensors", "pieces"}},
      {"surplus piece",
       [](auto& m) { m.shards[0].pieces.push_back(m.shards[0].pieces[0]); },
       {"shard-00000.safetensors", "pieces"}},
      {"unknown role",
       [](auto& m) { m.shards[0].role = "assistant"; },
       {"shard-00000.safetensors", "assistant"}},
      {"empty shard",
       [](auto& m) { m.shards.push_back(m.shards[0]); },
       {"expected tensors, found none"}},
      {"no input", [](auto& m) { m.input_bound = 0; }, {"input_bound"}},
      {"no context", [](auto& m) { m.context_bound = 0; }, {"context_bound"}},
      {"context over the config's",
       [](auto& m) { m.context_bound = 257; },
       {"context_bound", "256", "257"}},
  };
  for (const Contradiction& c : cases) {
    artifact::Manifest manifest = *pristine;
    c.make(manifest);
    const auto result = make_load_plan(manifest);
    EXPECT_TRUE(refused(result, ErrorCode::malformed_artifact)) << c.why;
    for (const std::string& word : c.words)
      EXPECT_TRUE(refused(result, ErrorCode::malformed_artifact, {word})) << c.why;
  }
}

TEST(Manifest, TheSchemaNamesTheFiles) {
  const Json pristine = Json::parse(read_file(exported(false) / "manifest.json"));
  ASSERT_TRUE(accepted(artifact::read_manifest(canonical_json(pristine))));
  for (const auto& [place, own] :
       {std::pair("/shards/0/file", "shard-00000.safetensors"),
        std::pair("/shards/2/file", "shard-00002.safetensors"),
        std::pair("/tokenizer/file", "tokenizer.bin"),
        std::pair("/generation_config/file", "generation_config.json")}) {
    EXPECT_EQ(pristine[Json::json_pointer(place)], own);
    for (const char* file : {"../shard", "/etc/passwd", "", "..", "a\nb", "manifest.json",
                             "shard-00001.safetensors", "shard-0.safetensors", "TOKENIZER.bin"}) {
      Json changed = pristine;
      changed[Json::json_pointer(place)] = file;
      EXPECT_TRUE(refused(artifact::read_manifest(canonical_json(changed)), ErrorCode::bad_value,
                          {"manifest.json", "file", own, Json(file).dump()}))
          << place << " " << file;
    }
  }
}

TEST(Manifest, ANumberOfAnotherTypeIsAnotherNumber) {
  for (const char* file : {"manifest.json", "receipt.json"}) {
    const std::string text = read_file(exported(false) / file);
    const std::string version = "\"schema_version\": 4";
    ASSERT_NE(text.find(version), text.npos);
    for (const char* other : {"4.0", "true", "\"4\"", "3", "null", "4e0"}) {
      std::string changed = text;
      changed.replace(changed.find(version) + version.size() - 1, 1, other);
      const auto read = artifact::read_manifest(changed);
      if (std::string_view(file) == "manifest.json")
        EXPECT_TRUE(refused(read, ErrorCode::bad_value, {"schema_version", "4"})) << other;
      else
        EXPECT_TRUE(
            refused(artifact::read_receipt(changed), ErrorCode::bad_value, {"schema_version", "4"}))
            << other;
    }
  }
}

}  // namespace
}  // namespace tandem::test
