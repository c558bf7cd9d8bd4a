// The config of Gemma 3: a text config, one in a multimodal config that leaves most to
// transformers' defaults, the forms of RoPE, refusals by name, and the registry's differences.
#include <gtest/gtest.h>

#include <functional>

#include "spec/data.h"
#include "spec/pair.h"
#include "spec/tensors.h"
#include "support/refusal.h"

namespace tandem::spec {
namespace {

using test::read_good;
using test::refused;
using test::test_json;

constexpr std::string_view small = "spec/data/gemma3_270m.json";
constexpr std::string_view large = "spec/data/gemma3_27b.json";

Json changed(std::string_view file, const Json& patch) {
  Json json = test_json(file);
  json.merge_patch(patch);  // null removes a key
  return json;
}

Result<Config> read(const Json& json) { return read_config(json.dump(), "config.json"); }

TEST(Gemma3, TextConfig) {
  const Config config = read_good(test_json(small));
  EXPECT_EQ(config.family, Family::gemma3);
  EXPECT_EQ(config.vocabulary, 262144u);
  EXPECT_EQ(config.hidden, 640u);
  EXPECT_EQ(config.heads, 4u);
  EXPECT_EQ(config.window, 512u);
  EXPECT_EQ(config.per_layer_input, 0u);
  EXPECT_EQ(config.max_positions, 32768u);
  EXPECT_EQ(config.query_scale(), 0.0625);
  EXPECT_FALSE(config.softcap);
  EXPECT_FALSE(config.norms_values());
  EXPECT_FALSE(config.scales_layers());
  EXPECT_EQ(config.norm_offset(), 1);
  EXPECT_EQ(config.eos, std::vector<uint32_t>{1});
  ASSERT_EQ(config.layers.size(), 18u);
  EXPECT_EQ(config.owning_layers(), 18u);
  for (uint32_t i = 0; i < 18; ++i) {
    const bool full = i % 6 == 5;
    const Layer expected{full ? LayerKind::full : LayerKind::sliding,
                         256,
                         1,
                         2048,
                         false,
                         i,
                         {full ? 1e6 : 1e4, 128}};
    EXPECT_EQ(config.layers[i], expected) << "layer " << i;
  }
}

TEST(Gemma3, MultimodalConfigWithDefaults) {
  const Config config = read_good(test_json(large));
  EXPECT_EQ(config.family, Family::gemma3);
  EXPECT_EQ(config.vocabulary, 262208u);
  EXPECT_EQ(config.max_positions, 131072u);
  EXPECT_EQ(config.query_scalar, 168);
  EXPECT_EQ(config.bos, 2u);
  EXPECT_EQ(config.eos, (std::vector<uint32_t>{1, 106}));
  ASSERT_EQ(config.layers.size(), 62u);
  EXPECT_EQ(config.layers[5].rope, (Rope{1e6, 64, 8}));
  EXPECT_EQ(config.layers[61].kind, LayerKind::sliding);
  EXPECT_EQ(config.layers[61].rope, (Rope{1e4, 64}));

  const Json bare = {{"head_dim", nullptr},
                     {"num_attention_heads", nullptr},
                     {"num_key_value_heads", nullptr},
                     {"query_pre_attn_scalar", nullptr}};
  const Config by_default = read_good(changed(large, {{"text_config", bare}}));
  EXPECT_EQ(by_default.heads, 8u);
  EXPECT_EQ(by_default.layers[0].kv_heads, 4u);
  EXPECT_EQ(by_default.layers[0].head_dim, 256u);
  EXPECT_EQ(by_default.query_scalar, 256);
}

TEST(Gemma3, TwoFormsOfRopeAndOfTheLayerPattern) {
  const Config older =
      read_good(changed(small, {{"rope_scaling", {{"type", "linear"}, {"factor", 8}}}}));
  const Json sliding = {{"rope_type", "default"}, {"rope_theta", 1e4}};
  const Json full = {{"rope_type", "linear"}, {"rope_theta", 1e6}, {"factor", 8.0}};
  const Json newer = {
      {"rope_theta", nullptr},
      {"rope_local_base_freq", nullptr},
      {"rope_scaling", nullptr},
      {"rope_parameters", {{"sliding_attention", sliding}, {"full_attention", full}}}};
  EXPECT_EQ(read_good(changed(small, newer)), older);

  const Json pattern = {{"layer_types", nullptr}};
  EXPECT_EQ(read_good(changed(small, pattern)), read_good(test_json(small)));
  Json every_third = pattern;
  every_third["sliding_window_pattern"] = 3;
  EXPECT_EQ(read_good(changed(small, every_third)).layers[2].kind, LayerKind::full);
}

TEST(Gemma3, CanonicalTextReadsBackToTheSame) {
  for (const std::string_view file : {small, large}) {
    for (const double scalar : {256.0, 168.0, 0.3}) {
      Json json = test_json(file);
      (json.contains("text_config") ? json["text_config"] : json)["query_pre_attn_scalar"] = scalar;
      const Config config = read_good(json);
      const std::string canonical = canonical_config(config);
      EXPECT_EQ(read_good(Json::parse(canonical)), config);
      EXPECT_EQ(canonical_config(read_good(Json::parse(canonical))), canonical);
    }
  }
}

TEST(Gemma3, Refusals) {
  using enum ErrorCode;
  const struct {
    Json patch;
    ErrorCode code;
    std::initializer_list<std::string_view> words;
  } cases[] = {
      {{{"model_type", "gemma3n_text"}}, unsupported, {"gemma3n_text", "gemma3_text"}},
      {{{"attn_logit_softcapping", 50.0}}, unsupported, {"attn_logit_softcapping"}},
      {{{"use_bidirectional_attention", true}}, unsupported, {"use_bidirectional_attention"}},
      {{{"attention_bias", true}}, unsupported, {"attention_bias"}},
      {{{"hidden_activation", "silu"}}, unsupported, {"hidden_activation", "silu"}},
      {{{"tie_word_embeddings", false}}, unsupported, {"tie_word_embeddings"}},
      {{{"rope_scaling", {{"rope_type", "yarn"}, {"factor", 8}}}},
       unsupported,
       {"rope_scaling", "yarn"}},
      {{{"rope_scaling", {{"rope_type", "linear"}}}}, missing_key, {"rope_scaling.factor"}},
      {{{"rope_scaling", {{"factor", 8}}}}, missing_key, {"rope_scaling.type"}},
      {{{"rope_scaling", {{"rope_type", "linear"}, {"factor", 0}}}}, bad_value, {"factor"}},
      {{{"rope_scaling", {{"rope_type", "default"}, {"factor", 8}}}}, unknown_key, {"factor"}},
      {{{"rope_parameters", Json::object()}}, missing_key, {"sliding_attention"}},
      {{{"rope_theta", -1}}, bad_value, {"rope_theta"}},
      {{{"rope_local_base_freq", "10000"}}, wrong_type, {"rope_local_base_freq"}},
      {{{"query_pre_attn_scalar", 0}}, bad_value, {"query_pre_attn_scalar"}},
      {{{"query_pre_attn_scalar", true}}, wrong_type, {"query_pre_attn_scalar"}},
      {{{"num_key_value_heads", 3}}, bad_value, {"num_key_value_heads", "divisor of the 4"}},
      {{{"head_dim", 255}}, unsupported, {"head_dim", "multiple of 2"}},
      {{{"hidden_size", nullptr}}, missing_key, {"hidden_size"}},
      {{{"sliding_window", nullptr}}, missing_key, {"sliding_window"}},
      {{{"sliding_window", 0}}, bad_value, {"sliding_window"}},
      {{{"num_hidden_layers", 17}}, bad_value, {"num_hidden_layers is 17", "is 18"}},
      {{{"layer_types", nullptr}, {"sliding_window_pattern", 0}},
       bad_value,
       {"sliding_window_pattern"}},
      {{{"eos_token_id", 262144}}, bad_value, {"eos_token_id"}},
      {{{"hidden_size_per_layer_input", 256}}, unknown_key, {"hidden_size_per_layer_input"}},
      {{{"num_kv_shared_layers", 2}}, unknown_key, {"num_kv_shared_layers"}},
  };
  for (const auto& [patch, code, words] : cases) {
    EXPECT_TRUE(refused(read(changed(small, patch)), code, words)) << patch.dump();
  }
  EXPECT_TRUE(refused(read(changed(large, {{"model_type", "gemma4"}})), bad_value,
                      {"model_type is gemma4", "text_config", "is gemma3"}));
}

TEST(Gemma3, HasNoScalarsAndNormsWithAnOffset) {
  const Config config = read_good(test_json(small));
  for (const Tensor& tensor : tensors(config)) {
    EXPECT_EQ(tensor.name.find("per_layer"), std::string::npos) << tensor.name;
    EXPECT_FALSE(tensor.name.ends_with("scalar")) << tensor.name;
    EXPECT_EQ(tensor.offset, tensor.name.ends_with("norm") ? 1 : 0) << tensor.name;
  }
  for (const Tensor& tensor : tensors(read_good(test_json("spec/data/atlas.json")))) {
    EXPECT_EQ(tensor.offset, 0) << tensor.name;
  }
  EXPECT_EQ(without_prefix("language_model.model.norm.weight"), "norm.weight");
  EXPECT_EQ(ignored_by_rule(config, "vision_tower.vision_model.head.weight"), "vision tower");
}

TEST(Gemma3, TakesNoAssistant) {
  const auto assistant =
      read_assistant_config(test_json("spec/data/atlas_assistant.json").dump(), "assistant.json");
  ASSERT_TRUE(test::accepted(assistant));
  EXPECT_TRUE(refused(check_pair(read_good(test_json(small)), *assistant, "assistant.json"),
                      ErrorCode::bad_value, {"family", "gemma3", "gemma4"}));
}

}  // namespace
}  // namespace tandem::spec
