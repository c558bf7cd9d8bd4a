// The config reader: known geometries, both ways to write them, and refusals by name.
#include "spec/config.h"

#include <gtest/gtest.h>

#include <functional>

#include "spec/data.h"

namespace tandem::spec {
namespace {

using test::golden_models;
using test::read_good;
using test::test_json;

struct Geometry {
  std::string_view file;
  uint32_t vocabulary, hidden, heads, window, per_layer_input, max_positions;
  uint32_t layers, full_period, owning, kv_heads, sliding_dim, full_dim, intermediate;
  uint32_t shared_intermediate, sliding_donor, full_donor;
  std::vector<uint32_t> eos;
};

const Geometry geometries[] = {
    {"spec/data/e2b.json",
     262144,
     1536,
     8,
     512,
     256,
     131072,
     35,
     5,
     15,
     1,
     256,
     512,
     6144,
     12288,
     13,
     14,
     {1, 106}},
    {"spec/data/e4b.json",
     262144,
     2560,
     8,
     512,
     256,
     131072,
     42,
     6,
     24,
     2,
     256,
     512,
     10240,
     10240,
     22,
     23,
     {1, 106}},
    {"spec/data/atlas.json",
     8192,
     256,
     4,
     128,
     32,
     8192,
     10,
     5,
     6,
     1,
     64,
     128,
     768,
     1536,
     5,
     4,
     {1, 5}},
};

TEST(Config, KnownGeometries) {
  for (const Geometry& g : geometries) {
    SCOPED_TRACE(g.file);
    const Config config = read_good(test_json(g.file));
    EXPECT_EQ(config.vocabulary, g.vocabulary);
    EXPECT_EQ(config.hidden, g.hidden);
    EXPECT_EQ(config.heads, g.heads);
    EXPECT_EQ(config.window, g.window);
    EXPECT_EQ(config.per_layer_input, g.per_layer_input);
    EXPECT_EQ(config.max_positions, g.max_positions);
    EXPECT_EQ(config.rms_norm_epsilon, 1e-6);
    EXPECT_EQ(config.softcap, 30.0);
    EXPECT_EQ(config.bos, 2u);
    EXPECT_EQ(config.pad, 0u);
    EXPECT_EQ(config.eos, g.eos);
    EXPECT_EQ(config.owning_layers(), g.owning);
    ASSERT_EQ(config.layers.size(), g.layers);
    for (uint32_t i = 0; i < g.layers; ++i) {
      const bool full = (i + 1) % g.full_period == 0;
      const bool owns = i < g.owning;
      const Layer expected{full ? LayerKind::full : LayerKind::sliding,
                           full ? g.full_dim : g.sliding_dim,
                           g.kv_heads,
                           owns ? g.intermediate : g.shared_intermediate,
                           false,
                           owns ? i : (full ? g.full_donor : g.sliding_donor),
                           full ? Rope{1e6, g.full_dim / 8} : Rope{1e4, g.sliding_dim / 2}};
      EXPECT_EQ(config.layers[i], expected) << "layer " << i;
      EXPECT_EQ(config.shares_kv(i), !owns) << "layer " << i;
    }
  }
}

// The same models, as transformers saves them and as its constructor takes them.
TEST(Config, SavedAndConstructorFormsAreTheSame) {
  const Json models = golden_models();
  ASSERT_EQ(models.size(), 4u);
  for (const Json& model : models) {
    SCOPED_TRACE(model["name"]);
    EXPECT_EQ(read_good(model["config"]), read_good(model["constructor"]));
  }
}

TEST(Config, KeysAreValuesInOwningFullLayersOnly) {
  const Config config = read_good(golden_models()[2]["config"]);
  EXPECT_FALSE(config.layers[0].key_is_value);
  EXPECT_TRUE(config.layers[1].key_is_value);
  EXPECT_EQ(config.layers[0].kv_heads, 4u);
  EXPECT_EQ(config.layers[1].kv_heads, 2u);
  EXPECT_EQ(config.layers[1].head_dim, 64u);
  EXPECT_EQ(config.per_layer_input, 0u);
}

TEST(Config, CanonicalTextReadsBackAndIsItsOwnCanonicalText) {
  std::vector<Json> configs;
  for (const Geometry& g : geometries) configs.push_back(test_json(g.file));
  for (const Json& model : golden_models()) {
    configs.push_back(model["config"]);
  }
  for (const Json& json : configs) {
    const Config config = read_good(json);
    const std::string text = canonical_config(config);
    ASSERT_TRUE(parse_canonical_json(text, "canonical"));
    const auto again = read_config(text, "canonical");
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(*again, config) << text;
    EXPECT_EQ(canonical_config(*again), text);
  }
}

// A factor must come back as the same number of pairs, also where pairs / (head_dim / 2) is
// inexact.
TEST(Config, EveryPartialRotationReadsBack) {
  Config config = read_good(test_json("spec/data/atlas.json"));
  for (const uint32_t head_dim : {6u, 98u, 128u, 206u, 512u}) {
    for (uint32_t pairs = 0; pairs <= head_dim / 2; ++pairs) {
      for (Layer& layer : config.layers) {
        if (layer.kind != LayerKind::full) continue;
        layer.head_dim = head_dim;
        layer.rope.rotated_pairs = pairs;
      }
      const auto again = read_config(canonical_config(config), "canonical");
      ASSERT_TRUE(again) << again.error().message;
      ASSERT_EQ(again->layers[4].rope.rotated_pairs, pairs) << "of head_dim " << head_dim;
    }
  }
}

TEST(Config, EveryLayerTypePatternIsFollowed) {
  Json json = test_json("spec/data/atlas.json");
  json["per_layer_config"] = nullptr;
  json["layer_types"] = nullptr;
  json["num_hidden_layers"] = 14;
  const Config config = read_good(json);
  for (uint32_t i = 0; i < 14; ++i) {
    const bool full = i == 5 || i == 11 || i == 13;
    EXPECT_EQ(config.layers[i].kind, full ? LayerKind::full : LayerKind::sliding) << i;
  }
}

// A change of the atlas config that changes one thing in what is read.
struct Acceptance {
  const char* why;
  std::function<void(Json&)> change;
  std::function<bool(const Config&)> holds;
};

TEST(Config, Accepts) {
  const Acceptance cases[] = {
      {"one stop token", [](Json& j) { j["eos_token_id"] = 7; },
       [](const Config& c) { return c.eos == std::vector<uint32_t>{7}; }},
      {"missing epsilon means 1e-6", [](Json& j) { j.erase("rms_norm_eps"); },
       [](const Config& c) { return c.rms_norm_epsilon == 1e-6; }},
      {"another epsilon", [](Json& j) { j["rms_norm_eps"] = 1e-5; },
       [](const Config& c) { return c.rms_norm_epsilon == 1e-5; }},
      {"missing activation", [](Json& j) { j.erase("hidden_activation"); },
       [](const Config&) { return true; }},
      {"no softcap", [](Json& j) { j["final_logit_softcapping"] = nullptr; },
       [](const Config& c) { return !c.softcap; }},
      {"no KV sharing: nothing is double wide", [](Json& j) { j.erase("num_kv_shared_layers"); },
       [](const Config& c) { return c.owning_layers() == 10 && c.layers[9].intermediate == 768; }},
      {"no per-layer inputs, whatever their vocabulary",
       [](Json& j) { j["hidden_size_per_layer_input"] = 0, j["vocab_size_per_layer_input"] = 1; },
       [](const Config& c) { return c.per_layer_input == 0; }},
      {"missing per-layer inputs", [](Json& j) { j.erase("hidden_size_per_layer_input"); },
       [](const Config& c) { return c.per_layer_input == 0; }},
      {"theta", [](Json& j) { j["rope_parameters"]["full_attention"]["rope_theta"] = 5e5; },
       [](const Config& c) {
         return c.layers[4].rope.theta == 5e5 && c.layers[0].rope.theta == 1e4;
       }},
      {"a rotation of an uneven part",
       [](Json& j) { j["rope_parameters"]["full_attention"]["partial_rotary_factor"] = 0.3; },
       [](const Config& c) { return c.layers[4].rope.rotated_pairs == 19; }},
      {"only per_layer_config", [](Json& j) { j.erase("global_head_dim"); },
       [](const Config& c) { return c.layers[9].head_dim == 128; }},
      {"only global_head_dim", [](Json& j) { j.erase("per_layer_config"); },
       [](const Config& c) { return c.layers[9].head_dim == 128; }},
      {"per_layer_config changes KV heads of full layers",
       [](Json& j) {
         for (const char* layer : {"4", "9"}) {
           j["per_layer_config"][layer]["num_key_value_heads"] = 2;
         }
       },
       [](const Config& c) { return c.layers[4].kv_heads == 2 && c.layers[0].kv_heads == 1; }},
      {"KV heads of full layers in the other form",
       [](Json& j) {
         j.erase("per_layer_config");
         j["attention_k_eq_v"] = true;
         j["num_global_key_value_heads"] = 2;
       },
       [](const Config& c) {
         return c.layers[4].kv_heads == 2 && c.layers[4].key_is_value &&
                c.layers[0].kv_heads == 1 && !c.layers[9].key_is_value;
       }},
      {"a window of one", [](Json& j) { j["sliding_window"] = 1; },
       [](const Config& c) { return c.window == 1; }},
      {"what does not matter",
       [](Json& j) { j["initializer_range"] = 9, j["attention_dropout"] = 0.5; },
       [](const Config&) { return true; }},
  };
  for (const Acceptance& c : cases) {
    SCOPED_TRACE(c.why);
    Json json = test_json("spec/data/atlas.json");
    c.change(json);
    EXPECT_TRUE(c.holds(read_good(json)));
  }
}

// A change of a config that must be refused with this code and a message with these words.
struct Refusal {
  std::function<void(Json&)> change;
  ErrorCode code;
  std::vector<std::string_view> words;
};

void expect_refusals(std::string_view file, const std::vector<Refusal>& refusals) {
  for (const Refusal& refusal : refusals) {
    SCOPED_TRACE(refusal.words.front());
    Json json = test_json(file);
    const std::string before = json.dump();
    refusal.change(json);
    ASSERT_NE(json.dump(), before);
    const auto config = read_config(json.dump(), "config.json");
    ASSERT_FALSE(config);
    EXPECT_EQ(config.error().code, refusal.code) << config.error().message;
    EXPECT_TRUE(config.error().message.starts_with("config.json: ")) << config.error().message;
    for (const std::string_view word : refusal.words) {
      EXPECT_NE(config.error().message.find(word), std::string::npos) << config.error().message;
    }
  }
}

std::function<void(Json&)> set(std::string_view key, Json value) {
  return [key, value](Json& json) { json[std::string(key)] = value; };
}
std::function<void(Json&)> at(const char* pointer, Json value) {
  return [pointer, value](Json& json) { json[Json::json_pointer(pointer)] = value; };
}
std::function<void(Json&)> drop(std::string_view key) {
  return [key](Json& json) { json.erase(std::string(key)); };
}

TEST(Config, RefusesWhatIsNotBuilt) {
  const ErrorCode code = ErrorCode::unsupported;
  expect_refusals(
      "spec/data/atlas.json",
      {
          {set("enable_moe_block", true), code, {"enable_moe_block: true"}},
          {set("num_experts", 8), code, {"num_experts: 8"}},
          {set("attention_bias", true), code, {"attention_bias: true"}},
          {set("use_bidirectional_attention", "vision"), code, {"use_bidirectional_attention"}},
          {set("use_bidirectional_attention", "all"), code, {"use_bidirectional_attention"}},
          {set("use_bidirectional_attention", true), code, {"use_bidirectional_attention"}},
          {set("hidden_activation", "silu"), code, {"hidden_activation: \"silu\""}},
          {set("hidden_activation", "gelu"), code, {"hidden_activation: \"gelu\""}},
          {set("tie_word_embeddings", false), code, {"tie_word_embeddings: false"}},
          {set("is_encoder_decoder", true), code, {"is_encoder_decoder: true"}},
          {set("model_type", "gemma2_text"), code, {"model_type: \"gemma2_text\""}},
          {at("/layer_types/3", "linear_attention"), code, {"layer_types[3]", "linear_attention"}},
          {at("/rope_parameters/full_attention/rope_type", "yarn"),
           code,
           {"rope_type", "\"yarn\""}},
          {at("/rope_parameters/sliding_attention/partial_rotary_factor", 0.5),
           code,
           {"sliding_attention.partial_rotary_factor", "0.5"}},
          {set("hidden_size", 255), code, {"hidden_size", "multiple of 4", "255"}},
          {set("head_dim", 63), code, {"head_dim", "multiple of 2", "63"}},
      });
}

TEST(Config, RefusesUnknownKeysByName) {
  const ErrorCode code = ErrorCode::unknown_key;
  expect_refusals(
      "spec/data/atlas.json",
      {
          {set("attn_logit_softcapping", 50.0), code, {"attn_logit_softcapping"}},
          {set("quantization_config", Json::object()), code, {"quantization_config"}},
          {set("image_token_id", 5), code, {"image_token_id"}},
          {at("/rope_parameters/full_attention/factor", 8.0), code, {"full_attention.factor"}},
          {at("/rope_parameters/rope_theta", 1e4), code, {"rope_parameters.rope_theta"}},
          {at("/per_layer_config/4/intermediate_size", 8),
           code,
           {"per_layer_config.4.intermediate_size"}},
      });
}

TEST(Config, RefusesMissingKeysByName) {
  std::vector<Refusal> refusals;
  for (const std::string_view key :
       {"vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads",
        "num_key_value_heads", "head_dim", "intermediate_size", "sliding_window",
        "max_position_embeddings", "rope_parameters", "bos_token_id", "eos_token_id",
        "pad_token_id"}) {
    refusals.push_back({drop(key), ErrorCode::missing_key, {key}});
  }
  refusals.push_back({[](Json& j) { j.erase("global_head_dim"), j.erase("per_layer_config"); },
                      ErrorCode::missing_key,
                      {"global_head_dim", "per_layer_config"}});
  for (const char* key : {"rope_type", "rope_theta"}) {
    refusals.push_back({[key](Json& j) { j["rope_parameters"]["full_attention"].erase(key); },
                        ErrorCode::missing_key,
                        {key}});
  }
  refusals.push_back({[](Json& j) { j["rope_parameters"].erase("sliding_attention"); },
                      ErrorCode::missing_key,
                      {"rope_parameters.sliding_attention"}});
  expect_refusals("spec/data/atlas.json", refusals);
}

TEST(Config, RefusesMistypedValuesByName) {
  const ErrorCode code = ErrorCode::wrong_type;
  expect_refusals("spec/data/atlas.json",
                  {
                      {set("vocab_size", "8192"), code, {"vocab_size", "\"8192\""}},
                      {set("hidden_size", 256.0), code, {"hidden_size", "256.0"}},
                      {set("num_hidden_layers", true), code, {"num_hidden_layers", "true"}},
                      {set("sliding_window", -1), code, {"sliding_window", "-1"}},
                      {set("head_dim", nullptr), code, {"head_dim", "null"}},
                      {set("use_double_wide_mlp", 1), code, {"use_double_wide_mlp", "1"}},
                      {set("attention_k_eq_v", "no"), code, {"attention_k_eq_v", "\"no\""}},
                      {set("rms_norm_eps", "1e-6"), code, {"rms_norm_eps"}},
                      {set("eos_token_id", Json{1, "5"}), code, {"eos_token_id[1]"}},
                      {set("layer_types", "full_attention"), code, {"layer_types"}},
                      {set("rope_parameters", Json::array()), code, {"rope_parameters"}},
                      {at("/per_layer_config/4", 128), code, {"per_layer_config.4"}},
                  });
}

TEST(Config, RefusesContradictionsWithBothValues) {
  const ErrorCode code = ErrorCode::bad_value;
  expect_refusals(
      "spec/data/atlas.json",
      {
          {set("global_head_dim", 256), code, {"global_head_dim is 256", "is 128", "layer 4"}},
          {at("/per_layer_config/9/head_dim", 64),
           code,
           {"global_head_dim is 128", "per_layer_config.9.head_dim", "is 64"}},
          {[](Json& j) { j["per_layer_config"].erase("9"); },
           code,
           {"global_head_dim is 128", "head_dim (for layer 9) is 64"}},
          {at("/per_layer_config/2/head_dim", 32),
           code,
           {"head_dim is 64", "per_layer_config.2.head_dim", "is 32"}},
          {set("num_global_key_value_heads", 2),
           code,
           {"num_global_key_value_heads is 2", "num_key_value_heads (for layer 4) is 1"}},
          {[](Json& j) { j.erase("per_layer_config"), j["num_global_key_value_heads"] = 2; },
           code,
           {"num_key_value_heads is 1", "num_global_key_value_heads", "is 2"}},
          {at("/per_layer_config/4/num_key_value_heads", 2),
           code,
           {"per_layer_config.4.num_key_value_heads is 2", "(for layer 9) is 1"}},
          {set("num_hidden_layers", 11), code, {"num_hidden_layers is 11", "is 10"}},
          {set("vocab_size_per_layer_input", 4096),
           code,
           {"vocab_size is 8192", "vocab_size_per_layer_input is 4096"}},
          {at("/layer_types/9", "sliding_attention"), code, {"layer_types[9]", "last layer"}},
      });
}

TEST(Config, RefusesValuesOutOfRange) {
  const ErrorCode code = ErrorCode::bad_value;
  const auto sharing = [](uint32_t layers) { return set("num_kv_shared_layers", layers); };
  expect_refusals(
      "spec/data/atlas.json",
      {
          {set("vocab_size", 0), code, {"vocab_size", "found 0"}},
          {set("vocab_size", 4294967295u), code, {"vocab_size", "4294967295"}},
          {set("vocab_size", 4294967296u * 2ull), code, {"vocab_size", "8589934592"}},
          {set("hidden_size", 1u << 30), code, {"hidden_size", "1073741824"}},
          {set("num_hidden_layers", 0), code, {"num_hidden_layers", "found 0"}},
          {set("num_hidden_layers", 4000000000u), code, {"num_hidden_layers", "4000000000"}},
          {set("num_attention_heads", 0), code, {"num_attention_heads"}},
          {set("num_key_value_heads", 0), code, {"num_key_value_heads", "found 0"}},
          {set("num_key_value_heads", 3), code, {"num_key_value_heads", "divisor of the 4", "3"}},
          {set("num_key_value_heads", 8), code, {"num_key_value_heads", "8"}},
          {set("head_dim", 0), code, {"head_dim", "found 0"}},
          {set("intermediate_size", 1u << 31), code, {"intermediate_size"}},
          {set("sliding_window", 0), code, {"sliding_window", "found 0"}},
          {set("max_position_embeddings", 0), code, {"max_position_embeddings"}},
          {set("hidden_size_per_layer_input", 1u << 20), code, {"hidden_size_per_layer_input"}},
          {set("rms_norm_eps", 0), code, {"rms_norm_eps"}},
          {set("rms_norm_eps", -1e-6), code, {"rms_norm_eps"}},
          {set("final_logit_softcapping", 0.0), code, {"final_logit_softcapping"}},
          {at("/rope_parameters/full_attention/rope_theta", 0.0), code, {"rope_theta"}},
          {at("/rope_parameters/full_attention/partial_rotary_factor", 1.5),
           code,
           {"partial_rotary_factor", "1.5"}},
          {at("/rope_parameters/full_attention/partial_rotary_factor", -0.5),
           code,
           {"partial_rotary_factor", "-0.5"}},
          {sharing(10), code, {"num_kv_shared_layers", "10"}},
          {sharing(4294967295u), code, {"num_kv_shared_layers", "4294967295"}},
          {sharing(6), code, {"num_kv_shared_layers", "no full_attention layer", "layer 4"}},
          {set("bos_token_id", 8192), code, {"bos_token_id", "8192"}},
          {set("pad_token_id", 8192), code, {"pad_token_id", "8192"}},
          {set("eos_token_id", Json{1, 9000}), code, {"eos_token_id", "9000"}},
          {set("eos_token_id", Json::array()), code, {"eos_token_id"}},
          {at("/per_layer_config/10/head_dim", 128), code, {"per_layer_config.10", "0 to 9"}},
          {at("/per_layer_config/04/head_dim", 128), code, {"per_layer_config.04"}},
          {at("/per_layer_config/x/head_dim", 128), code, {"per_layer_config.x"}},
      });
}

TEST(Config, MultimodalRefusals) {
  expect_refusals(
      "spec/data/e2b.json",
      {
          {set("model_type", "gemma4_assistant"), ErrorCode::unsupported, {"gemma4_assistant"}},
          {set("model_type", "gemma3n"), ErrorCode::unsupported, {"gemma3n"}},
          {set("tie_word_embeddings", false), ErrorCode::unsupported, {"tie_word_embeddings"}},
          {set("hidden_size", 1536), ErrorCode::unknown_key, {"hidden_size"}},
          {set("bos_token_id", 3), ErrorCode::bad_value, {"bos_token_id is 3", "is 2"}},
          {set("pad_token_id", 3), ErrorCode::bad_value, {"pad_token_id is 3", "is 0"}},
          {set("eos_token_id", 262144), ErrorCode::bad_value, {"eos_token_id", "262144"}},
          {set("text_config", nullptr), ErrorCode::wrong_type, {"text_config", "null"}},
          {at("/text_config/surprise", 1), ErrorCode::unknown_key, {"text_config.surprise"}},
          {at("/text_config/head_dim", "256"), ErrorCode::wrong_type, {"text_config.head_dim"}},
      });
}

TEST(Config, MultimodalStopTokensFallBackToTheTextConfig) {
  Json json = test_json("spec/data/e2b.json");
  json.erase("eos_token_id");
  EXPECT_EQ(read_good(json).eos, std::vector<uint32_t>{1});
}

TEST(Config, RefusesTextThatIsNotAnObject) {
  for (const std::string_view text : {"", "[]", "{\"vocab_size\": 1, \"vocab_size\": 1}", "{}"}) {
    EXPECT_FALSE(read_config(text, "config.json")) << text;
  }
}

}  // namespace
}  // namespace tandem::spec
