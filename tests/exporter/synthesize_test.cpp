// Artifacts of random weights: their geometries, that they are marked, and that they compute.
#include "exporter/synthesize.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "artifact/verify.h"
#include "base/json.h"
#include "exporter/artifact_weights.h"
#include "exporter/geometry.h"
#include "model/reference.h"
#include "spec/pair.h"
#include "support/checkpoint.h"
#include "support/refusal.h"
#include "text/tokenizer.h"

namespace tandem::test {
namespace {

namespace fs = std::filesystem;
using artifact::Artifact;
using exporter::synthesize;
using spec::WeightType;

spec::Config tiny(const TinyShape& shape = {}) {
  return spec::read_config(tiny_config(shape), "config.json").value();
}

double mean_square(std::span<const float> values) {
  double sum = 0;
  for (const float value : values) sum += double{value} * value;
  return sum / static_cast<double>(values.size());
}

std::map<std::string, std::string> contents(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::directory_iterator(folder))
    files[entry.path().filename().string()] = read_file(entry.path());
  return files;
}

struct SynthesizeTest : ::testing::Test {
  fs::path out(std::string_view name = "out") const { return folder.path() / name; }

  Artifact make(const spec::Config& config, uint64_t seed = 1) {
    fs::remove_all(out());
    EXPECT_TRUE(accepted(synthesize(config, out(), {.seed = seed})));
    auto opened = Artifact::open(out());
    EXPECT_TRUE(accepted(opened));
    return std::move(opened).value();
  }

  TemporaryFolder folder;
};

TEST(Geometry, IsThatOfTransformersConfigs) {
  for (const char* name : {"e2b", "e4b", "atlas"}) {
    const std::string file = fmt::format("{}/tests/spec/data/{}.json", TANDEM_SOURCE_DIR, name);
    const auto expected = spec::read_config(read_file(file), file);
    ASSERT_TRUE(accepted(expected));
    const auto config = exporter::geometry(name);
    ASSERT_TRUE(accepted(config));
    EXPECT_EQ(*config, *expected) << name;
  }
  EXPECT_TRUE(refused(exporter::geometry("e3b"), ErrorCode::not_found,
                      {"e3b", exporter::geometry_names()}));
  EXPECT_TRUE(refused(exporter::geometry(""), ErrorCode::not_found));
}

TEST(Geometry, OfAnAssistantFitsItsModel) {
  const std::string file =
      fmt::format("{}/tests/spec/data/atlas_assistant.json", TANDEM_SOURCE_DIR);
  const auto expected = spec::read_assistant_config(read_file(file), file);
  ASSERT_TRUE(accepted(expected));
  EXPECT_EQ(exporter::assistant_geometry("atlas").value(), *expected);
  for (const char* name : {"e2b", "e4b"}) {
    const auto target = exporter::geometry(name);
    const auto assistant = exporter::assistant_geometry(name);
    ASSERT_TRUE(accepted(target) && accepted(assistant));
    EXPECT_TRUE(accepted(spec::check_pair(*target, *assistant, name)));
    EXPECT_EQ(assistant->ordered, (spec::OrderedHead{2048, 32})) << name;
    EXPECT_EQ(assistant->text.hidden, 256u) << name;
  }
  EXPECT_TRUE(refused(exporter::assistant_geometry("e3b"), ErrorCode::not_found,
                      {"e3b", exporter::geometry_names()}));
}

TEST_F(SynthesizeTest, IsAWholeArtifactThatSaysWhatItIs) {
  const auto report = synthesize(tiny(), out(), {.seed = 7});
  ASSERT_TRUE(accepted(report));
  const auto verified = artifact::verify(out());
  ASSERT_TRUE(accepted(verified));
  const Artifact& artifact = verified->artifact;
  EXPECT_EQ(artifact.digest(), report->digest);
  EXPECT_EQ(artifact.plan().bytes, report->bytes);
  EXPECT_EQ(artifact.config(), tiny());
  EXPECT_EQ(artifact.manifest().recipe, artifact::Recipe{});  // q4_0 and f32
  EXPECT_EQ(artifact.receipt().target->synthetic_seed, 7u);
  EXPECT_TRUE(artifact.receipt().target->sources.empty());
}

TEST_F(SynthesizeTest, TheMarkCannotBeDroppedOrJoinedBySources) {
  artifact::Receipt receipt = make(tiny()).receipt();
  Json json = Json::parse(receipt_text(receipt));
  json["target"]["synthetic_seed"] = nullptr;
  EXPECT_TRUE(refused(artifact::read_receipt(canonical_json(json)), ErrorCode::bad_value,
                      {"synthetic_seed", "null", "0 files"}));
  receipt.target->sources = {{"config.json", 2, sha256("{}")}};
  EXPECT_TRUE(refused(artifact::read_receipt(receipt_text(receipt)), ErrorCode::bad_value,
                      {"synthetic_seed", "a seed", "1 files"}));
  receipt.target->synthetic_seed.reset();
  write_file(out() / "receipt.json", receipt_text(receipt));
  EXPECT_TRUE(refused(Artifact::open(out()), ErrorCode::malformed_artifact, {"target"}));
  receipt = make(tiny()).receipt();
  receipt.target->synthetic_seed = 99;
  write_file(out() / "receipt.json", receipt_text(receipt));
  EXPECT_TRUE(refused(Artifact::open(out()), ErrorCode::malformed_artifact, {"target"}));
}

TEST_F(SynthesizeTest, TheSeedGivesTheBytes) {
  const auto first = synthesize(tiny(), out("first"), {.seed = 1, .threads = 1});
  const auto again = synthesize(tiny(), out("again"), {.seed = 1, .threads = 3});
  const auto other = synthesize(tiny(), out("other"), {.seed = 2});
  ASSERT_TRUE(accepted(first) && accepted(again) && accepted(other));
  EXPECT_EQ(first->digest, again->digest);
  EXPECT_EQ(contents(out("first")), contents(out("again")));
  EXPECT_FALSE(first->digest == other->digest);
}

TEST_F(SynthesizeTest, AnAssistantIsOfTheSameSeed) {
  const spec::Config target = exporter::geometry("atlas").value();
  const spec::AssistantConfig assistant = exporter::assistant_geometry("atlas").value();
  const auto report = synthesize(target, out(), {.assistant = assistant, .seed = 5});
  ASSERT_TRUE(accepted(report));
  const auto verified = artifact::verify(out());
  ASSERT_TRUE(accepted(verified));
  EXPECT_EQ(verified->artifact.plan().bytes, report->bytes);
  const artifact::Manifest& manifest = verified->artifact.manifest();
  ASSERT_TRUE(manifest.mtp);
  EXPECT_EQ(manifest.mtp->config, assistant);
  EXPECT_EQ(manifest.recipe, artifact::Recipe{});
  const artifact::Receipt& receipt = verified->artifact.receipt();
  EXPECT_EQ(receipt.target->synthetic_seed, 5u);
  ASSERT_TRUE(receipt.assistant);
  EXPECT_EQ(receipt.assistant->synthetic_seed, 5u);
  EXPECT_TRUE(receipt.assistant->sources.empty());
  // The target is as without the assistant.
  const std::string shard = read_file(out() / "shard-00000.safetensors");
  const auto alone = synthesize(target, out("alone"), {.seed = 5});
  ASSERT_TRUE(accepted(alone));
  EXPECT_EQ(read_file(out("alone") / "shard-00000.safetensors"), shard);
  const auto other = synthesize(target, out("other"), {.assistant = assistant, .seed = 6});
  ASSERT_TRUE(accepted(other));
  const auto opened = Artifact::open(out("other"));
  ASSERT_TRUE(accepted(opened));
  EXPECT_FALSE(opened->manifest().mtp->token_ordering == manifest.mtp->token_ordering);
}

TEST_F(SynthesizeTest, AnAssistantOfAnotherModelIsRefused) {
  const auto result =
      synthesize(tiny(), out(), {.assistant = exporter::assistant_geometry("e2b").value()});
  EXPECT_TRUE(refused(result, ErrorCode::bad_value, {"1536"}));
  EXPECT_FALSE(fs::exists(out()));
}

TEST_F(SynthesizeTest, TheMarkOfAnAssistantStandsForItself) {
  ASSERT_TRUE(accepted(synthesize(exporter::geometry("atlas").value(), out(),
                                  {.assistant = exporter::assistant_geometry("atlas").value()})));
  artifact::Receipt receipt = Artifact::open(out()).value().receipt();
  receipt.assistant->sources = {{"config.json", 2, sha256("{}")}};
  EXPECT_TRUE(refused(artifact::read_receipt(receipt_text(receipt)), ErrorCode::bad_value,
                      {"assistant.synthetic_seed", "a seed", "1 files"}));
}

TEST_F(SynthesizeTest, AnOutputThatExistsIsRefused) {
  fs::create_directory(out());
  EXPECT_TRUE(refused(synthesize(tiny(), out()), ErrorCode::already_exists, {out().string()}));
  EXPECT_TRUE(fs::is_empty(out()));
}

TEST_F(SynthesizeTest, AVocabularyWithoutRoomForBytesIsRefused) {
  const spec::Config config = tiny({.vocabulary = 200});
  EXPECT_TRUE(refused(synthesize(config, out()), ErrorCode::unsupported, {"every byte"}));
  EXPECT_FALSE(fs::exists(out()));
}

// Random scales, one for 32 weights, and random weights let the mean of n squares stray by 2 /
// sqrt(n) and the sum of n weights by 1.2 times its unit; five times that is allowed. The scales'
// own spread adds 1/48.
TEST_F(SynthesizeTest, MatricesKeepTheSizeOfTheirInput) {
  TinyShape shape;
  shape.per_layer_input = 16;  // no whole block: per_layer_output is F16
  const spec::Config config = tiny(shape);
  const Artifact artifact = make(config);
  Weights weights = read_weights(out());
  for (const spec::Tensor& tensor : spec::tensors(config)) {
    std::vector<float> values;
    for (const std::vector<float>& row : weights.at(tensor.name))
      values.insert(values.end(), row.begin(), row.end());
    if (tensor.tensor_class == spec::TensorClass::vector) {
      const auto [least, most] = std::minmax_element(values.begin(), values.end());
      EXPECT_TRUE(*least >= 0.75f && *most <= 1.25f) << tensor.name;
      continue;
    }
    EXPECT_EQ(artifact.manifest().recipe.of(tensor),
              tensor.columns == 16 ? WeightType::f16 : WeightType::q4_0);
    const double count = static_cast<double>(values.size());
    EXPECT_NEAR(mean_square(values) * tensor.columns, 49.0 / 48, 10 / std::sqrt(count))
        << tensor.name;
    double sum = 0;
    for (const float value : values) sum += value;
    EXPECT_NEAR(sum / std::sqrt(count / tensor.columns), 0, 6) << tensor.name;
  }
}

TEST_F(SynthesizeTest, TheTokenizerHasATokenForEveryId) {
  const Artifact artifact = make(tiny());
  const auto tokenizer = text::Tokenizer::load(std::as_bytes(std::span(artifact.tokenizer())));
  ASSERT_TRUE(accepted(tokenizer));
  EXPECT_EQ(tokenizer->size(), artifact.config().vocabulary);
  EXPECT_EQ(tokenizer->bos(), artifact.config().bos);
  EXPECT_EQ(tokenizer->added_token("<pad>")->id, 0u);
  EXPECT_EQ(tokenizer->added_token("<eos>")->id, 1u);
  EXPECT_EQ(tokenizer->added_token("<|turn>")->id, 4u);
  EXPECT_EQ(tokenizer->added_token("<turn|>")->id, 5u);
  const std::string text = "caf\u00e9 au lait 511";
  const auto ids = tokenizer->encode_prompt(text);
  ASSERT_TRUE(accepted(ids));
  EXPECT_EQ(ids->size(), 1 + text.size());
  EXPECT_EQ(tokenizer->decode(std::span(*ids).subspan(1)), text);
  EXPECT_EQ(tokenizer->piece(511), " 511");
}

class ModelSink : public artifact::WeightSink {
 public:
  explicit ModelSink(model::Model& model) : model_(model) {}
  Result<void> write(std::string_view plane, uint64_t offset,
                     std::span<const std::byte> bytes) override {
    return model_.write(plane, offset, bytes);
  }

 private:
  model::Model& model_;
};

// As many layers as a real model, so that what grows from layer to layer would show.
TEST_F(SynthesizeTest, ItComputes) {
  const spec::Config config = tiny({.layers = 36, .kv_shared = 18});
  const Artifact artifact = make(config);
  model::TensorTypes types;
  for (const artifact::TensorEntry& tensor : artifact.manifest().tensors)
    types[tensor.name] = tensor.type;
  const auto model = model::Reference::open(config, types, {.context = 16});
  ASSERT_TRUE(accepted(model));
  ModelSink sink(**model);
  ASSERT_TRUE(accepted(artifact::load(artifact, sink)));
  const auto sequence = (*model)->sequence();
  ASSERT_TRUE(accepted(sequence));
  std::vector<float> logits;
  const auto keep_logits = [&](uint32_t, std::span<const float> rows) -> Result<void> {
    logits.insert(logits.end(), rows.begin(), rows.end());
    return {};
  };
  uint32_t layers = 0;
  const auto check_layer = [&](std::string_view name, uint32_t, std::span<const float> values) {
    if (!name.starts_with("layer")) return;
    ++layers;
    const double size = std::sqrt(mean_square(values));
    EXPECT_TRUE(size > 0.1 && size < 100) << name << ": " << size;
  };
  const std::vector<uint32_t> ids = {2, 104, 101, 108, 108, 111};
  ASSERT_TRUE(accepted((*sequence)->score(ids, keep_logits, check_layer)));
  EXPECT_GE(layers, 36u);
  ASSERT_EQ(logits.size(), ids.size() * config.vocabulary);
  const auto [least, most] = std::minmax_element(logits.begin(), logits.end());
  EXPECT_TRUE(std::all_of(logits.begin(), logits.end(), [](float x) { return std::isfinite(x); }));
  EXPECT_GT(*most - *least, 1);
  const auto last = logits.end() - config.vocabulary;
  EXPECT_FALSE(std::equal(last, logits.end(), last - config.vocabulary));
}

}  // namespace
}  // namespace tandem::test
