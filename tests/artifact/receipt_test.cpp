// What a receipt repeats of its manifest and of its sources must be what those say; messages name
// the file, the field and both values.
#include "artifact/receipt.h"

#include <gtest/gtest.h>

#include <functional>

#include "artifact/verify.h"
#include "fixture.h"

namespace tandem::test {
namespace {

namespace fs = std::filesystem;
using artifact::Artifact;
using artifact::Manifest;
using artifact::Receipt;

class ReceiptTest : public ArtifactTest {
 protected:
  void SetUp() override {
    const auto opened = Artifact::open(exported(false));
    ASSERT_TRUE(accepted(opened));
    manifest_ = opened->manifest();
    receipt_ = opened->receipt();
  }

  Manifest manifest_;
  Receipt receipt_;
};

TEST_F(ReceiptTest, MessagesNameTheFieldAndBothValues) {
  EXPECT_TRUE(accepted(check_receipt(receipt_, manifest_)));
  const std::string other = sha256("another").hex();
  struct Case {
    std::function<void(Receipt&)> change;
    std::vector<std::string> words;
  };
  for (const Case& c : std::vector<Case>{
           {[&](Receipt& r) { r.target.reset(); }, {"target: ", "made from", "null"}},
           {[&](Receipt& r) { r.assistant = r.target; }, {"assistant: ", "null", "an object"}},
           {[&](Receipt& r) { r.target->config = sha256("another"); },
            {"target.config_sha256", sha256(spec::canonical_config(manifest_.config)).hex(),
             other}},
           {[&](Receipt& r) { r.target->exporter += "1"; },
            {"target", manifest_.origin.hex(), "origin_sha256"}},
           {[&](Receipt& r) {
              r.target->published = {"us/tiny", "0123"};
            },
            {"target", manifest_.origin.hex()}},
           {[&](Receipt& r) {
              r.target->ignored.push_back({"x", "y"});
            },
            {"target", manifest_.origin.hex()}},
           {[&](Receipt& r) { r.recipe.matrix = spec::WeightType::f16; },
            {"/recipe/matrix", "q4_0", "f16"}},
           {[&](Receipt& r) { ++r.files[0].bytes; },
            {"/files/0/bytes", std::to_string(receipt_.files[0].bytes),
             std::to_string(receipt_.files[0].bytes + 1)}},
           {[&](Receipt& r) { r.files.pop_back(); },
            {"/files/" + std::to_string(receipt_.files.size() - 1), "an object", "nothing"}},
           {[&](Receipt& r) { r.shards[1].digest = sha256("another"); },
            {"/shards/1/digest", receipt_.shards[1].digest.hex(), other}},
           {[&](Receipt& r) { r.shards[1].file = "x"; },
            {"/shards/1/file", "shard-00001.safetensors", "\"x\""}}}) {
    Receipt changed = receipt_;
    c.change(changed);
    const auto result = check_receipt(changed, manifest_);
    for (const std::string& word : c.words) {
      EXPECT_TRUE(refused(result, ErrorCode::malformed_artifact,
                          {"receipt.json", "manifest.json", "expected", "found", word}));
    }
  }
}

// The artifact's texts are files of the checkpoint, whose hashes the receipt has, too.
TEST_F(ReceiptTest, TextsAreThoseOfTheSources) {
  const std::string other = sha256("another").hex();
  struct Case {
    std::function<void(Manifest&, Receipt&)> change;
    std::vector<std::string> words;
  };
  ASSERT_TRUE(manifest_.generation_config && manifest_.chat_template);
  const std::string settings = manifest_.generation_config->sha256.hex();
  const std::string chat = manifest_.chat_template->sha256.hex();
  const auto without = [](Receipt& receipt, std::string_view file) {
    std::erase_if(receipt.target->sources, [&](const auto& source) { return source.file == file; });
  };
  for (const Case& c : std::vector<Case>{
           {[&](Manifest&m, Receipt&) { m.generation_config->sha256 = sha256("another"); },
            {"generation_config.json", "expected", settings, other}},
           {[&](Manifest&m, Receipt&) { ++m.chat_template->bytes; },
            {"chat_template.jinja", chat, std::to_string(manifest_.chat_template->bytes + 1)}},
           {[&](Manifest&m, Receipt&) { m.generation_config.reset(); },
            {"generation_config.json", "expected none", settings}},
           {[&](Manifest&, Receipt&r) { without(r, "chat_template.jinja"); },
            {"chat_template.jinja", chat, "found none"}},
           {[&](Manifest&m, Receipt&) { m.tokenizer_source = sha256("another"); },
            {"target.sources: tokenizer.json", manifest_.tokenizer_source.hex(), other}},
           {[&](Manifest&, Receipt&r) { without(r, "tokenizer.json"); },
            {"target.sources: tokenizer.json", manifest_.tokenizer_source.hex(), "found none"}}}) {
    Manifest manifest = manifest_;
    Receipt receipt = receipt_;
    c.change(manifest, receipt);
    manifest.origin = origin_digest(*receipt.target);
    receipt.files = bound_files(manifest);
    for (const std::string& word : c.words) {
      EXPECT_TRUE(refused(check_receipt(receipt, manifest), ErrorCode::malformed_artifact,
                          {"receipt.json", "manifest.json", word}));
    }
  }
  // A GGUF file holds them inside.
  receipt_.target->sources = {{"model.gguf", 1, sha256("model")}};
  manifest_.origin = origin_digest(*receipt_.target);
  receipt_.files = bound_files(manifest_);
  EXPECT_TRUE(accepted(check_receipt(receipt_, manifest_)));
}

TEST_F(ReceiptTest, AForgedTextIsRefusedFromTheDisk) {
  const fs::path folder = copy();
  sign(folder, manifest_, receipt_);
  EXPECT_TRUE(accepted(Artifact::open(folder)));
  const std::string text = "{\n  \"eos_token_id\": 2\n}\n";
  write_file(folder / "generation_config.json", text);
  Manifest manifest = manifest_;
  manifest.generation_config->bytes = text.size();
  manifest.generation_config->sha256 = sha256(text);
  sign(folder, manifest, receipt_);
  EXPECT_TRUE(refused(Artifact::open(folder), ErrorCode::malformed_artifact,
                      {"generation_config.json", sha256(text).hex()}));
}

TEST_F(ReceiptTest, AShardsHeaderIsShownWhereItDiffers) {
  const fs::path folder = copy();
  const fs::path shard = folder / "shard-00000.safetensors";
  std::string bytes = read_file(shard);
  const size_t place = bytes.find("embedding.quants");
  ASSERT_NE(place, bytes.npos);
  bytes[place] = '\x9b';
  write_file(shard, bytes);
  EXPECT_TRUE(refused(Artifact::open(folder), ErrorCode::malformed_artifact,
                      {shard.string(), "header, byte " + std::to_string(place),
                       "expected \"embedding.quants", "found \"\\x9bmbedding.quants"}));
}

}  // namespace
}  // namespace tandem::test
