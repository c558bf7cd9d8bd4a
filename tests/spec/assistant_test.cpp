// The assistant's config and tensors, and what must agree between it and its target.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <sstream>

#include "spec/data.h"
#include "spec/pair.h"
#include "spec/tensors.h"
#include "support/refusal.h"

namespace tandem::spec {
namespace {

using test::accepted;
using test::refused;
using test::test_json;

using Change = std::function<void(Json&)>;
using Shapes = std::map<std::string, std::vector<uint64_t>>;

Json atlas() { return test_json("spec/data/atlas_assistant.json"); }

Result<AssistantConfig> read(const Json& json) {
  return read_assistant_config(json.dump(), "config.json");
}

AssistantConfig read_good(const Json& json) {
  const auto config = read(json);
  EXPECT_TRUE(accepted(config));
  return config.value_or(AssistantConfig{});
}

Change at(const char* pointer, const Json& value) {
  return [pointer, value](Json& json) { json[Json::json_pointer(pointer)] = value; };
}
Change drop(const char* parent, const char* key) {
  return [parent, key](Json& json) { json[Json::json_pointer(parent)].erase(key); };
}

TEST(AssistantConfig, OfTheAtlas) {
  const AssistantConfig config = read_good(atlas());
  EXPECT_EQ(config.backbone_hidden, 256u);
  EXPECT_EQ(config.ordered, (OrderedHead{256, 16}));
  EXPECT_EQ(config.text.vocabulary, 8192u);
  EXPECT_EQ(config.text.hidden, 128u);
  EXPECT_EQ(config.text.heads, 4u);
  EXPECT_EQ(config.text.window, 128u);
  EXPECT_EQ(config.text.softcap, std::nullopt);
  EXPECT_EQ(config.text.owning_layers(), 0u);
  ASSERT_EQ(config.text.layers.size(), 4u);
  const Layer sliding{LayerKind::sliding, 64, 1, 256, false, of_target, Rope{1e4, 32}};
  const Layer full{LayerKind::full, 128, 1, 256, false, of_target, Rope{1e6, 16}};
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(config.text.layers[i], i < 3 ? sliding : full) << i;
}

TEST(AssistantConfig, CanonicalTextReadsBack) {
  Json plain = atlas();
  plain["use_ordered_embeddings"] = false;
  for (const Json& json : {atlas(), plain}) {
    const AssistantConfig config = read_good(json);
    const std::string text = canonical_config(config);
    ASSERT_TRUE(parse_canonical_json(text, "canonical"));
    const auto again = read_assistant_config(text, "canonical");
    ASSERT_TRUE(accepted(again));
    EXPECT_EQ(*again, config) << text;
  }
}

TEST(AssistantConfig, Accepts) {
  struct Case {
    const char* why;
    Change change;
    std::function<bool(const AssistantConfig&)> holds;
  };
  const Case cases[] = {
      {"a plain head, whatever its centroids",
       [](Json& j) { j["use_ordered_embeddings"] = false, j["num_centroids"] = 7; },
       [](const auto& c) { return !c.ordered; }},
      {"all centroids", at("/centroid_intermediate_top_k", 256),
       [](const auto& c) { return c.ordered->top_k == 256; }},
      {"a centroid for each token", at("/num_centroids", 8192),
       [](const auto& c) { return c.ordered->centroids == 8192; }},
      {"a softcap", at("/text_config/final_logit_softcapping", 30.0),
       [](const auto& c) { return c.text.softcap == 30.0; }},
      {"a window of its own", at("/text_config/sliding_window", 64),
       [](const auto& c) { return c.text.window == 64; }},
      {"nothing is double wide where no layer owns K/V",
       at("/text_config/use_double_wide_mlp", true),
       [](const auto& c) { return c.text.layers[3].intermediate == 256; }},
      {"keys that are values are the target's matter", at("/text_config/attention_k_eq_v", true),
       [](const auto& c) { return !c.text.layers[3].key_is_value; }},
      {"missing model_type", drop("", "model_type"), [](const auto&) { return true; }},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.why);
    Json json = atlas();
    c.change(json);
    EXPECT_TRUE(c.holds(read_good(json)));
  }
}

TEST(AssistantConfig, RefusesByName) {
  struct Case {
    Change change;
    ErrorCode code;
    std::vector<std::string_view> words;
  };
  const ErrorCode unsupported = ErrorCode::unsupported, bad = ErrorCode::bad_value;
  const Case cases[] = {
      {at("/model_type", "gemma4"), unsupported, {"model_type: \"gemma4\""}},
      {at("/text_config/model_type", "gemma3_text"), unsupported, {"gemma3_text"}},
      {at("/tie_word_embeddings", false), unsupported, {"tie_word_embeddings: false"}},
      {at("/text_config/num_kv_shared_layers", 3),
       unsupported,
       {"num_kv_shared_layers", "all 4 layers", "found 3"}},
      {drop("/text_config", "num_kv_shared_layers"), unsupported, {"all 4 layers", "found 0"}},
      {[](Json& j) {
         j["text_config"]["hidden_size_per_layer_input"] = 32;
         j["text_config"]["vocab_size_per_layer_input"] = 8192;
       },
       unsupported,
       {"hidden_size_per_layer_input", "found 32"}},
      {at("/text_config/enable_moe_block", true), unsupported, {"enable_moe_block: true"}},
      {at("/num_centroids", 255), bad, {"num_centroids", "8192", "found 255"}},
      {at("/num_centroids", 16384), bad, {"num_centroids", "8192", "16384"}},
      {at("/num_centroids", 0), bad, {"num_centroids", "found 0"}},
      {at("/centroid_intermediate_top_k", 257), bad, {"top_k", "256", "found 257"}},
      {at("/centroid_intermediate_top_k", 0), bad, {"top_k", "found 0"}},
      {at("/backbone_hidden_size", 0), bad, {"backbone_hidden_size", "found 0"}},
      {drop("", "backbone_hidden_size"), ErrorCode::missing_key, {"backbone_hidden_size"}},
      {drop("", "use_ordered_embeddings"), ErrorCode::missing_key, {"use_ordered_embeddings"}},
      {drop("", "num_centroids"), ErrorCode::missing_key, {"num_centroids"}},
      {drop("", "text_config"), ErrorCode::missing_key, {"text_config"}},
      {at("/use_ordered_embeddings", 1), ErrorCode::wrong_type, {"use_ordered_embeddings"}},
      {at("/num_centroids", "256"), ErrorCode::wrong_type, {"num_centroids"}},
      {at("/surprise", 1), ErrorCode::unknown_key, {"surprise"}},
      {at("/text_config/surprise", 1), ErrorCode::unknown_key, {"text_config.surprise"}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.words.front());
    Json json = atlas();
    c.change(json);
    const auto config = read(json);
    EXPECT_TRUE(refused(config, c.code, {"config.json"}));
    for (const std::string_view word : c.words) EXPECT_TRUE(refused(config, c.code, {word}));
  }
}

TEST(AssistantConfig, IsNoTarget) {
  EXPECT_TRUE(refused(read_config(atlas().dump(), "config.json"), ErrorCode::unsupported,
                      {"gemma4_assistant"}));
}

// What the registry asks a checkpoint for.
Shapes sources(const AssistantConfig& config) {
  Shapes shapes;
  for (const Tensor& tensor : tensors(config)) {
    EXPECT_TRUE(is_assistants(tensor.name)) << tensor.name;
    const bool flat =
        tensor.tensor_class == TensorClass::vector || tensor.tensor_class == TensorClass::ids;
    for (const Source& source : tensor.sources) {
      std::vector<uint64_t> shape = {source.rows, source.columns};
      if (flat) shape.erase(shape.begin());
      EXPECT_TRUE(shapes.emplace(source.name, shape).second) << source.name;
    }
  }
  return shapes;
}

Shapes without_prefixes(const Shapes& shapes) {
  Shapes result;
  for (const auto& [name, shape] : shapes) result[std::string(without_prefix(name))] = shape;
  return result;
}

TEST(AssistantTensors, AreExactlyThoseOfTheAtlassCheckpoint) {
  Shapes expected;
  std::istringstream lines(test::test_text("spec/data/atlas_assistant_tensors.txt"));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    for (uint64_t size = 0; words >> size;) expected[name].push_back(size);
  }
  ASSERT_EQ(expected.size(), 50u);
  EXPECT_EQ(sources(read_good(atlas())), without_prefixes(expected));
}

TEST(AssistantTensors, AreThoseOfTransformersWithEitherHead) {
  size_t seen = 0;
  for (const Json& model : test::golden_models()) {
    if (!model.contains("assistant")) continue;
    for (const Json& assistant : model["assistant"]) {
      Json config = {{"text_config", assistant["text_config"]},
                     {"backbone_hidden_size", model["config"]["hidden_size"]},
                     {"num_centroids", assistant["num_centroids"]},
                     {"centroid_intermediate_top_k", assistant["centroid_intermediate_top_k"]},
                     {"use_ordered_embeddings", assistant["kind"] == "ordered"}};
      Shapes expected = without_prefixes(assistant["tensors"].get<Shapes>());
      // The index lists what was filled with hashes, which the ordering is not.
      if (assistant["kind"] == "ordered") expected["masked_embedding.token_ordering"] = {512};
      EXPECT_EQ(sources(read_good(config)), expected) << assistant["kind"];
      ++seen;
    }
  }
  EXPECT_EQ(seen, 2u);
}

TEST(AssistantTensors, AreToldFromTheTargets) {
  for (const Tensor& tensor : tensors(test::read_good(test_json("spec/data/atlas.json"))))
    EXPECT_FALSE(is_assistants(tensor.name)) << tensor.name;
  EXPECT_TRUE(is_assistants("assistant.embedding.quants"));
  EXPECT_FALSE(is_assistants("embedding.assistant.quants"));
}

TEST(AssistantTensors, TypesThatClassesMayHave) {
  for (const WeightType type :
       {WeightType::q4_0, WeightType::q8_0, WeightType::f16, WeightType::f32, WeightType::u32}) {
    EXPECT_EQ(may_be(TensorClass::matrix, type), type != WeightType::u32);
    EXPECT_EQ(may_be(TensorClass::table, type), type != WeightType::u32);
    EXPECT_EQ(may_be(TensorClass::vector, type), type == WeightType::f32);
    EXPECT_EQ(may_be(TensorClass::ids, type), type == WeightType::u32);
  }
}

TEST(Pair, DonorsAreTheLastOwningLayers) {
  const Config config = test::read_good(test_json("spec/data/e2b.json"));
  EXPECT_EQ(config.donor(LayerKind::sliding), 13u);
  EXPECT_EQ(config.donor(LayerKind::full), 14u);
  Config full = config;
  for (Layer& layer : full.layers) layer.kind = LayerKind::full;
  EXPECT_EQ(full.donor(LayerKind::sliding), std::nullopt);
}

TEST(Pair, WhatTheAssistantMayHaveOfItsOwn) {
  const Config target = test::read_good(test_json("spec/data/atlas.json"));
  const Change changes[] = {
      at("/backbone_hidden_size", 256),           at("/text_config/sliding_window", 64),
      at("/text_config/rms_norm_eps", 1e-5),      at("/text_config/num_attention_heads", 8),
      at("/text_config/hidden_size", 64),         at("/text_config/max_position_embeddings", 9000),
      at("/text_config/eos_token_id", 1),         at("/use_ordered_embeddings", false),
      at("/text_config/intermediate_size", 1024),
  };
  for (const Change& change : changes) {
    Json json = atlas();
    change(json);
    EXPECT_TRUE(accepted(check_pair(target, read_good(json), "assistant"))) << json;
  }
}

TEST(Pair, RefusesDifferencesWithBothValues) {
  struct Case {
    const char* why;
    std::function<void(Config&, AssistantConfig&)> change;
    std::vector<std::string_view> words;
    ErrorCode code = ErrorCode::bad_value;
  };
  constexpr const char* sliding = "sliding_attention (the target's layer 5)";
  constexpr const char* full = "full_attention (the target's layer 4)";
  const Case cases[] = {
      {"hidden",
       [](auto&, auto& a) { a.backbone_hidden = 512; },
       {"backbone_hidden_size", "256", "512"}},
      {"vocabulary",
       [](auto&, auto& a) { a.text.vocabulary = 4096; },
       {"vocab_size", "8192", "4096"}},
      {"KV heads", [](auto& t, auto&) { t.layers[5].kv_heads = 2; }, {"KV heads", sliding, "2"}},
      {"head_dim",
       [](auto&, auto& a) { a.text.layers[3].head_dim = 64; },
       {"head_dim", full, "128", "64"}},
      {"theta",
       [](auto&, auto& a) { a.text.layers[0].rope.theta = 5e5; },
       {"rope_theta", sliding, "10000", "500000"}},
      {"rotation",
       [](auto& t, auto&) { t.layers[4].rope.rotated_pairs = 64; },
       {"rotated pairs", full, "64", "16"}},
      {"no donor",
       [](auto& t, auto&) {
         for (Layer& layer : t.layers) layer.kind = LayerKind::sliding;
       },
       {"full_attention", "none that own"}},
      {"window",
       [](auto&, auto& a) { a.text.window = 129; },
       {"sliding_window", "129", "128"},
       ErrorCode::unsupported},
      {"positions",
       [](auto&, auto& a) { a.text.max_positions = 4096; },
       {"max_position_embeddings", "4096", "8192"},
       ErrorCode::unsupported},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.why);
    Config target = test::read_good(test_json("spec/data/atlas.json"));
    AssistantConfig assistant = read_good(atlas());
    c.change(target, assistant);
    for (const std::string_view word : c.words)
      EXPECT_TRUE(refused(check_pair(target, assistant, "assistant"), c.code, {word}));
  }
}

}  // namespace
}  // namespace tandem::spec
