// Exports of a target together with its assistant: what the artifact then holds, and every
// difference of the pair and defect of the token ordering refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>

#include "artifact/verify.h"
#include "exporter/artifact_weights.h"
#include "exporter/export.h"
#include "support/checkpoint.h"
#include "support/compare.h"
#include "support/refusal.h"

namespace tandem::test {
namespace {

namespace fs = std::filesystem;
using exporter::export_assistant;
using exporter::export_checkpoint;
using exporter::ExportOptions;
using exporter::ExportReport;
using spec::WeightType;
using Json = nlohmann::json;
using Tensors = std::vector<CheckpointTensor>;

const TinyShape shape{.layers = 2, .kv_shared = 0};
constexpr const char* ordering_name = "masked_embedding.token_ordering";

CheckpointTensor& find(Tensors& tensors, std::string_view name) {
  const auto found =
      std::find_if(tensors.begin(), tensors.end(), [&](const auto& t) { return t.name == name; });
  if (found == tensors.end()) ADD_FAILURE() << "no tensor " << name;
  return *found;
}

void set_id(Tensors& tensors, size_t index, int64_t id) {
  std::memcpy(&find(tensors, ordering_name).bytes[index * sizeof(id)], &id, sizeof(id));
}

struct AssistantExport : ::testing::Test {
  void SetUp() override { write_checkpoint(target(), tiny_config(shape)); }

  fs::path target() const { return folder.path() / "target"; }
  fs::path assistant() const { return folder.path() / "assistant"; }
  fs::path out() const { return folder.path() / "out"; }

  Result<ExportReport> run(const std::string& config, const Tensors& tensors,
                           ExportOptions options = {}) {
    fs::remove_all(assistant());
    fs::remove_all(out());
    write_checkpoint(assistant(), config, tensors);
    options.assistant = assistant();
    return export_checkpoint(target(), out(), options);
  }
  Result<ExportReport> run(const ExportOptions& options = {}) {
    return run(pair_config, random_assistant_tensors(pair_config), options);
  }

  TemporaryFolder folder;
  const std::string pair_config = tiny_assistant_config(shape);
};

TEST_F(AssistantExport, TheManifestSaysAllOfTheView) {
  ASSERT_TRUE(accepted(run()));
  const Json views = Json::parse(read_file(out() / "manifest.json")).at("views");
  EXPECT_EQ(views.at("plain").at("methods"), (Json{"decode", "prefill", "score"}));
  const Json& mtp = views.at("mtp");
  EXPECT_EQ(mtp.at("donors").at("sliding_attention"),
            (Json{{"layer", 0}, {"kv_heads", 2}, {"head_dim", 16}}));
  EXPECT_EQ(mtp.at("donors").at("full_attention"),
            (Json{{"layer", 1}, {"kv_heads", 2}, {"head_dim", 32}}));
  EXPECT_EQ(mtp.at("window"), 8);
  EXPECT_EQ(mtp.at("embedding_scale"), 8.0);
  std::vector<uint32_t> backwards(512);
  for (uint32_t i = 0; i < 512; ++i) backwards[i] = 511 - i;
  EXPECT_EQ(mtp.at("ordered_embeddings"),
            (Json{{"centroids", 16},
                  {"tokens_per_centroid", 32},
                  {"top_k", 3},
                  {"token_ordering_sha256", sha256(std::as_bytes(std::span(backwards))).hex()}}));
}

TEST_F(AssistantExport, APlainHeadHasNoOrdering) {
  const std::string plain = tiny_assistant_config(shape, false);
  ASSERT_TRUE(accepted(run(plain, random_assistant_tensors(plain))));
  const auto verified = artifact::verify(out());
  ASSERT_TRUE(accepted(verified));
  EXPECT_EQ(verified->artifact.manifest().mtp->token_ordering, std::nullopt);
  EXPECT_TRUE(Json::parse(read_file(out() / "manifest.json"))
                  .at("/views/mtp/ordered_embeddings"_json_pointer)
                  .is_null());
}

TEST_F(AssistantExport, EveryTensorArrives) {
  ExportOptions options;
  options.weights.recipe.matrix = options.weights.recipe.table = WeightType::f32;
  Tensors tensors = random_assistant_tensors(pair_config);
  ASSERT_TRUE(accepted(run(pair_config, tensors, options)));
  const Weights weights = read_weights(out(), artifact::View::mtp);
  const auto opened = artifact::Artifact::open(out(), artifact::View::mtp);
  ASSERT_TRUE(accepted(opened));
  for (const auto& [name, source] : std::map<std::string, std::string>{
           {"assistant.embedding", "model.embed_tokens.weight"},
           {"assistant.centroids", "masked_embedding.centroids.weight"},
           {"assistant.pre_projection", "pre_projection.weight"},
           {"assistant.post_projection", "post_projection.weight"},
           {"assistant.final_norm", "model.norm.weight"},
           {"assistant.layers.0.qkv", "model.layers.0.self_attn.q_proj.weight"},
           {"assistant.layers.1.down", "model.layers.1.mlp.down_proj.weight"},
           {"assistant.layers.1.scalar", "model.layers.1.layer_scalar"},
           {"assistant.token_ordering", ordering_name}}) {
    const CheckpointTensor& tensor = find(tensors, source);
    std::vector<float> expected(tensor.bytes.size() / exporter::value_bytes(tensor.dtype)), found;
    exporter::widen(tensor.dtype, tensor.bytes.data(), expected);
    for (const auto& row : weights.at(name)) found.insert(found.end(), row.begin(), row.end());
    EXPECT_TRUE(same_bits(found, expected)) << name;
  }
  EXPECT_EQ(weights.size(), artifact::registry(opened->manifest()).size());
}

// The plain view is what it is without an assistant, to the byte.
TEST_F(AssistantExport, TheTargetsShardsDoNotChange) {
  ExportOptions options;
  options.weights.shard_bytes = 60'000;
  ASSERT_TRUE(accepted(export_checkpoint(target(), folder.path() / "alone", options)));
  ASSERT_TRUE(accepted(run(options)));
  const auto alone = artifact::Artifact::open(folder.path() / "alone");
  const auto pair = artifact::Artifact::open(out());
  ASSERT_TRUE(accepted(alone));
  ASSERT_TRUE(accepted(pair));
  const auto& shards = alone->manifest().shards;
  ASSERT_GT(pair->manifest().shards.size(), shards.size());
  for (size_t i = 0; i < pair->manifest().shards.size(); ++i) {
    const artifact::Shard& shard = pair->manifest().shards[i];
    EXPECT_EQ(shard.role, i < shards.size() ? "target" : "assistant");
    if (i < shards.size()) {
      EXPECT_EQ(read_file(out() / shard.file), read_file(folder.path() / "alone" / shard.file));
    }
  }
  EXPECT_EQ(pair->plan().bytes, alone->plan().bytes);
  EXPECT_EQ(alone->manifest().mtp.has_value(), false);
  EXPECT_FALSE(Json::parse(manifest_text(alone->manifest())).at("views").contains("mtp"));
}

TEST_F(AssistantExport, TheReceiptBindsItsSources) {
  ASSERT_TRUE(accepted(run()));
  const auto opened = artifact::Artifact::open(out());
  ASSERT_TRUE(accepted(opened));
  ASSERT_TRUE(opened->receipt().assistant);
  const std::vector<artifact::BoundFile>& sources = opened->receipt().assistant->sources;
  EXPECT_EQ(sources.size(), 5u);
  for (const artifact::BoundFile& source : sources)
    EXPECT_EQ(source.sha256, sha256(read_file(assistant() / source.file))) << source.file;
  Tensors tensors = random_assistant_tensors(pair_config);
  const std::vector<std::byte> byte(1);
  tensors.push_back({"model.layers.0.self_attn.k_proj.weight", "I8", {1}, byte});
  tensors.push_back({"lm_head.weight", "I8", {1}, byte});
  ASSERT_TRUE(accepted(run(pair_config, tensors)));
  const auto again = artifact::Artifact::open(out());
  ASSERT_TRUE(accepted(again));
  EXPECT_EQ(again->receipt().assistant->ignored.size(), 2u);
  EXPECT_TRUE(again->receipt().target->ignored.empty());
}

// Matrices off the grid are F16, on it Q4_0; the target's are Q4_0 as always.
TEST_F(AssistantExport, MatricesOnTheGridAreQ4) {
  Tensors tensors = random_assistant_tensors(pair_config);
  CheckpointTensor& matrix = find(tensors, "post_projection.weight");
  for (size_t i = 0; i < matrix.bytes.size() / 2; ++i) {
    const float value = 0.125f * (i % 32 == 0 ? -8 : static_cast<float>(i * 7 % 16) - 8);
    const uint16_t bits = static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16);
    std::memcpy(&matrix.bytes[i * 2], &bits, 2);
  }
  const auto report = run(pair_config, tensors);
  ASSERT_TRUE(accepted(report));
  for (const exporter::TensorReport& tensor : report->tensors) {
    if (tensor.name == "assistant.post_projection") {
      EXPECT_EQ(tensor.type, WeightType::q4_0);
      EXPECT_TRUE(tensor.exact);
    }
    if (tensor.name == "assistant.pre_projection" || tensor.name == "assistant.layers.1.qkv") {
      EXPECT_EQ(tensor.type, WeightType::f16) << tensor.name;
    }
    if (tensor.name == "layers.1.qkv") {
      EXPECT_EQ(tensor.type, WeightType::q4_0);
    }
  }
  ExportOptions options;
  options.weights.recipe.matrix = WeightType::q8_0;
  const auto asked = run(options);
  ASSERT_TRUE(accepted(asked));
  for (const exporter::TensorReport& tensor : asked->tensors) {
    if (tensor.name == "assistant.pre_projection") {
      EXPECT_EQ(tensor.type, WeightType::q8_0);
    }
  }
}

TEST_F(AssistantExport, IdsHaveNoOtherType) {
  for (const auto& [tensor, type] :
       std::map<std::string, WeightType>{{"assistant.token_ordering", WeightType::f32},
                                         {"assistant.centroids", WeightType::u32},
                                         {"embedding", WeightType::u32},
                                         {"assistant.final_norm", WeightType::u32}}) {
    ExportOptions options;
    options.weights.recipe.tensors = {{tensor, type}};
    EXPECT_TRUE(refused(run(options), ErrorCode::invalid_argument, {tensor, name(type)}));
    EXPECT_FALSE(fs::exists(out()));
  }
}

TEST_F(AssistantExport, DifferencesOfThePairAreRefusedWithBothValues) {
  struct Case {
    const char* pointer;
    Json value;
    ErrorCode code;
    std::vector<std::string> words;
  };
  const ErrorCode bad = ErrorCode::bad_value;
  for (const Case& c : std::vector<Case>{
           {"/backbone_hidden_size", 128, bad, {"backbone_hidden_size", "64", "128"}},
           {"/text_config/vocab_size", 1024, bad, {"vocab_size", "512", "1024"}},
           {"/text_config/num_key_value_heads", 1, bad, {"KV heads", "has 2", "assistant 1"}},
           {"/text_config/head_dim", 32, bad, {"head_dim", "has 16", "assistant 32"}},
           {"/text_config/global_head_dim", 64, bad, {"head_dim", "has 32", "assistant 64"}},
           {"/text_config/rope_parameters/sliding_attention/rope_theta",
            5e5,
            bad,
            {"rope_theta", "10000", "500000"}},
           {"/text_config/rope_parameters/full_attention/partial_rotary_factor",
            0.5,
            bad,
            {"rotated pairs", "has 4", "assistant 8"}},
           {"/text_config/sliding_window", 9, ErrorCode::unsupported, {"sliding_window", "9", "8"}},
           {"/text_config/max_position_embeddings",
            128,
            ErrorCode::unsupported,
            {"max_position_embeddings", "128", "256"}}}) {
    Json changed = Json::parse(pair_config);
    changed[Json::json_pointer(c.pointer)] = c.value;
    const auto result = run(changed.dump(), random_assistant_tensors(changed.dump()));
    for (const std::string& word : c.words) EXPECT_TRUE(refused(result, c.code, {word}));
    EXPECT_FALSE(fs::exists(out())) << c.pointer;
  }
  // What it may have of its own.
  for (const auto& [pointer, value] :
       std::map<std::string, Json>{{"/text_config/sliding_window", 4},
                                   {"/text_config/rms_norm_eps", 1e-5},
                                   {"/text_config/num_attention_heads", 8},
                                   {"/text_config/hidden_size", 64}}) {
    Json changed = Json::parse(pair_config);
    changed[Json::json_pointer(pointer)] = value;
    EXPECT_TRUE(accepted(run(changed.dump(), random_assistant_tensors(changed.dump())))) << pointer;
  }
}

TEST_F(AssistantExport, AnotherTokenizerIsRefused) {
  ASSERT_TRUE(accepted(run()));
  fs::remove_all(out());
  const std::string text = read_file(assistant() / "tokenizer.json");
  write_file(assistant() / "tokenizer.json", text + "\n");
  ExportOptions options;
  options.assistant = assistant();
  EXPECT_TRUE(refused(export_checkpoint(target(), out(), options), ErrorCode::bad_value,
                      {"tokenizer.json", sha256(text).hex(), sha256(text + "\n").hex()}));
  fs::remove(assistant() / "tokenizer.json");
  EXPECT_TRUE(refused(export_checkpoint(target(), out(), options), ErrorCode::not_found,
                      {"tokenizer.json"}));
  options.assistant = target();
  EXPECT_TRUE(refused(export_checkpoint(target(), out(), options), ErrorCode::unsupported,
                      {"gemma4_text", "gemma4_assistant"}));
}

struct OntoTest : AssistantExport {
  fs::path plain() const { return folder.path() / "plain"; }

  // Exports the target to `plain`, and the assistant of these tensors onto it.
  Result<ExportReport> run_onto(const ExportOptions& of_target = {},
                                const ExportOptions& options = {}) {
    fs::remove_all(plain());
    fs::remove_all(out());
    write_checkpoint(assistant(), pair_config, random_assistant_tensors(pair_config));
    EXPECT_TRUE(accepted(export_checkpoint(target(), plain(), of_target)));
    return export_assistant(assistant(), plain(), out(), options);
  }
};

TEST_F(OntoTest, TypesAreThoseOfADirectExportWhateverThePlainRecipe) {
  ExportOptions direct;
  direct.assistant = assistant();
  for (const auto& [matrix, table] :
       std::vector<std::pair<std::optional<WeightType>, std::optional<WeightType>>>{
           {{}, {}}, {WeightType::q8_0, WeightType::f16}, {WeightType::f16, WeightType::f32}}) {
    ExportOptions of_target;
    of_target.weights.recipe.matrix = matrix;
    of_target.weights.recipe.table = table;
    ASSERT_TRUE(accepted(run_onto(of_target)));
    const auto attached = artifact::Artifact::open(plain(), artifact::View::mtp, out());
    ASSERT_TRUE(accepted(attached));
    const artifact::Recipe& recipe = attached->manifest().recipe;
    EXPECT_EQ(recipe.matrix, matrix.value_or(WeightType::q4_0));
    fs::remove_all(folder.path() / "direct");
    ASSERT_TRUE(accepted(export_checkpoint(target(), folder.path() / "direct", direct)));
    const auto both = artifact::Artifact::open(folder.path() / "direct", artifact::View::mtp);
    ASSERT_TRUE(accepted(both));
    for (const spec::Tensor& tensor : spec::tensors(both->manifest().mtp->config))
      EXPECT_EQ(recipe.of(tensor), both->manifest().recipe.of(tensor)) << tensor.name;
    EXPECT_TRUE(accepted(artifact::verify(plain(), {}, out())));
  }
}

TEST_F(OntoTest, BoundsAndReportAreItsOwn) {
  ExportOptions of_target;
  of_target.input_bound = 16;
  of_target.context_bound = 64;
  of_target.published = artifact::Published{"us/target", "1"};
  ExportOptions options;
  options.assistant_published = artifact::Published{"us/assistant", "2"};
  const auto report = run_onto(of_target, options);
  ASSERT_TRUE(accepted(report));
  const auto attached = artifact::Artifact::open(plain(), artifact::View::mtp, out());
  ASSERT_TRUE(accepted(attached));
  EXPECT_EQ(attached->digest(), report->digest);
  EXPECT_EQ(attached->manifest().input_bound, 16u);
  EXPECT_EQ(attached->manifest().context_bound, 64u);
  EXPECT_EQ(attached->receipt().target->published, of_target.published);
  EXPECT_EQ(attached->receipt().assistant->published, options.assistant_published);
  uint64_t bytes = 0;
  for (const auto& shard : attached->manifest().shards)
    bytes += shard.role == "assistant" ? shard.bytes : 0;
  EXPECT_EQ(report->bytes, bytes);
  EXPECT_EQ(report->provenance.state, artifact::State::pending);
  for (const exporter::TensorReport& tensor : report->tensors)
    EXPECT_TRUE(spec::is_assistants(tensor.name)) << tensor.name;
}

TEST_F(OntoTest, WhatDoesNotFitIsRefused) {
  ASSERT_TRUE(accepted(run_onto()));
  const fs::path none = folder.path() / "none";
  const auto onto = [&](const fs::path& artifact) {
    return export_assistant(assistant(), artifact, none);
  };
  EXPECT_TRUE(refused(onto(out()), ErrorCode::invalid_argument, {out().string(), "--assistant"}));
  EXPECT_TRUE(refused(onto(folder.path() / "missing"), ErrorCode::not_found));
  EXPECT_TRUE(refused(export_assistant(assistant(), plain(), out()), ErrorCode::already_exists));
  ExportOptions direct;
  direct.assistant = assistant();
  ASSERT_TRUE(accepted(export_checkpoint(target(), folder.path() / "direct", direct)));
  EXPECT_TRUE(
      refused(onto(folder.path() / "direct"), ErrorCode::bad_value, {"direct", "view mtp"}));
  EXPECT_TRUE(refused(export_assistant(target(), plain(), none), ErrorCode::unsupported,
                      {"gemma4_text", "gemma4_assistant"}));

  const std::string text = read_file(assistant() / "tokenizer.json");
  write_file(assistant() / "tokenizer.json", text + "\n");
  EXPECT_TRUE(refused(onto(plain()), ErrorCode::bad_value,
                      {"tokenizer.json", sha256(text).hex(), sha256(text + "\n").hex()}));
  const std::string wide = tiny_assistant_config({.layers = 2, .kv_shared = 0, .vocabulary = 1024});
  write_checkpoint(assistant(), wide, random_assistant_tensors(wide));
  EXPECT_TRUE(refused(onto(plain()), ErrorCode::bad_value, {"vocab_size", "512", "1024"}));
  ExportOptions options;
  options.weights.recipe.tensors = {{"layers.0.qkv", WeightType::f16}};
  write_checkpoint(assistant(), pair_config, random_assistant_tensors(pair_config));
  EXPECT_TRUE(refused(export_assistant(assistant(), plain(), none, options), ErrorCode::not_found,
                      {"layers.0.qkv"}));
  EXPECT_FALSE(fs::exists(none));
}

TEST_F(AssistantExport, DefectsOfTensorsAreRefused) {
  struct Case {
    const char* why;
    std::function<void(Tensors&)> damage;
    ErrorCode code;
    std::vector<std::string> words;
  };
  const ErrorCode damaged = ErrorCode::malformed_checkpoint, bad = ErrorCode::bad_value;
  const auto put = [](size_t index, int64_t id) {
    return [=](Tensors& tensors) { set_id(tensors, index, id); };
  };
  const Case cases[] = {
      {"a token twice", put(7, 511), bad, {"token_ordering[7]", "512", "511 again"}},
      {"no token", put(3, 512), bad, {"token_ordering[3]", "512"}},
      {"far beyond", put(3, int64_t{1} << 40), damaged, {ordering_name, "u32"}},
      {"negative", put(3, -1), damaged, {ordering_name, "u32"}},
      {"as weights",
       [](Tensors& t) {
         find(t, ordering_name).dtype = "F32";
         find(t, ordering_name).bytes.resize(2048);
       },
       ErrorCode::unsupported,
       {ordering_name, "I64", "F32"}},
      {"weights as ids",
       [](Tensors& t) {
         find(t, "model.norm.weight").dtype = "I32";
         find(t, "model.norm.weight").bytes.resize(128);
       },
       ErrorCode::unsupported,
       {"model.norm.weight", "BF16", "I32"}},
      {"too short",
       [](Tensors& t) {
         find(t, ordering_name).shape = {511};
         find(t, ordering_name).bytes.resize(511 * 8);
       },
       damaged,
       {ordering_name, "[512]", "[511]"}},
      {"a matrix",
       [](Tensors& t) {
         find(t, ordering_name).shape = {16, 32};
       },
       damaged,
       {"[512]"}},
      {"missing",
       [](Tensors& t) { std::erase_if(t, [](auto& x) { return x.name == ordering_name; }); },
       damaged,
       {"missing: masked_embedding.token_ordering"}},
      {"a layer too many",
       [](Tensors& t) {
         t.push_back({"model.layers.2.layer_scalar", "U8", {1}, {std::byte{0}}});
       },
       damaged,
       {"model.layers.2.layer_scalar"}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.why);
    Tensors tensors = random_assistant_tensors(pair_config);
    c.damage(tensors);
    const auto result = run(pair_config, tensors);
    EXPECT_TRUE(refused(result, c.code));
    for (const std::string& word : c.words) EXPECT_TRUE(refused(result, c.code, {word}));
    EXPECT_FALSE(fs::exists(out()));
  }
  Tensors narrow = random_assistant_tensors(pair_config);
  CheckpointTensor& ordering = find(narrow, ordering_name);
  ordering.dtype = "I32";
  ordering.bytes.resize(512 * 4);
  for (int32_t i = 0; i < 512; ++i) std::memcpy(&ordering.bytes[size_t(i) * 4], &i, 4);
  EXPECT_TRUE(accepted(run(pair_config, narrow)));
}

}  // namespace
}  // namespace tandem::test
