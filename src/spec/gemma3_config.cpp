// Reads and writes the geometry of a Gemma 3 text model in Hugging Face's config.json form. What a
// config leaves out has the value that transformers gives it: published ones rely on that.
#include <algorithm>
#include <array>

#include "spec/config_fields.h"

namespace tandem::spec {
namespace {

constexpr uint32_t default_vocabulary = 262208;
constexpr uint32_t default_heads = 8;
constexpr uint32_t default_kv_heads = 4;
constexpr uint32_t default_head_dim = 256;
constexpr uint32_t default_positions = 131072;
constexpr uint32_t default_query_scalar = 256;
constexpr double default_theta = 1e6;
constexpr double default_local_theta = 1e4;
constexpr uint32_t default_pattern = 6;  // every 6th layer is full
constexpr uint32_t default_pad = 0;
constexpr uint32_t default_eos = 1;
constexpr uint32_t default_bos = 2;

// From layer_types, or else from the pattern.
Result<std::vector<LayerKind>> read_kinds(JsonObject& text) {
  TRY_ASSIGN(const uint32_t layers, read_size(text, "num_hidden_layers", 1, max_layers));
  TRY_ASSIGN(const auto types, read_layer_types(text, layers));
  TRY_ASSIGN(const uint32_t pattern,
             read_size_or(text, "sliding_window_pattern", default_pattern, 1, max_layers));
  text.skip("_sliding_window_pattern");  // transformers writes it beside layer_types
  if (types) return *types;
  std::vector<LayerKind> kinds;
  for (uint32_t i = 1; i <= layers; ++i) {
    kinds.push_back(i % pattern == 0 ? LayerKind::full : LayerKind::sliding);
  }
  return kinds;
}

// The factor of "linear" scaling, from an object that may have its type under an older name.
Result<double> read_factor(JsonObject& rope) {
  const std::string_view key = rope.has("rope_type") ? "rope_type" : "type";
  TRY_ASSIGN(const std::string type, rope.get<std::string>(key));
  if (type == "default") return 1.0;
  if (type == "linear") return read_positive(rope, "factor");
  return fail(ErrorCode::unsupported, "{}: expected \"default\" or \"linear\", found \"{}\"",
              rope.where(key), type);
}

using Ropes = std::array<Rope, 2>;  // of the sliding and the full layers; all pairs are rotated

// Of rope_parameters, or else of the keys before it, where only full layers are scaled.
Result<Ropes> read_ropes(JsonObject& text, const std::vector<LayerKind>& kinds) {
  Ropes ropes;
  Rope& full = ropes[size_t(LayerKind::full)];
  TRY_ASSIGN(auto parameters, text.nullable<JsonObject>("rope_parameters"));
  if (!parameters) {
    Rope& sliding = ropes[size_t(LayerKind::sliding)];
    TRY_ASSIGN(full.theta, read_positive_or(text, "rope_theta", default_theta));
    TRY_ASSIGN(sliding.theta, read_positive_or(text, "rope_local_base_freq", default_local_theta));
    TRY_ASSIGN(auto scaling, text.nullable<JsonObject>("rope_scaling"));
    if (!scaling) return ropes;
    TRY_ASSIGN(full.factor, read_factor(*scaling));
    TRY(scaling->finish());
    return ropes;
  }
  for (const LayerKind kind : {LayerKind::sliding, LayerKind::full}) {
    const bool used = std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
    if (!used && !parameters->has(name(kind))) continue;
    TRY_ASSIGN(JsonObject rope, parameters->get<JsonObject>(name(kind)));
    TRY_ASSIGN(ropes[size_t(kind)].theta, read_positive(rope, "rope_theta"));
    TRY_ASSIGN(ropes[size_t(kind)].factor, read_factor(rope));
    TRY(rope.finish());
  }
  TRY(parameters->finish());
  return ropes;
}

Result<std::vector<Layer>> read_layers(JsonObject& text, uint32_t heads) {
  TRY_ASSIGN(const std::vector<LayerKind> kinds, read_kinds(text));
  TRY_ASSIGN(const Ropes ropes, read_ropes(text, kinds));
  Layer layer;
  TRY_ASSIGN(layer.head_dim, read_size_or(text, "head_dim", default_head_dim, 2, max_head_dim, 2));
  TRY_ASSIGN(layer.kv_heads, read_size_or(text, "num_key_value_heads", default_kv_heads, 1, heads));
  TRY(checked_kv_heads(layer.kv_heads, text.where("num_key_value_heads"), heads));
  TRY_ASSIGN(layer.intermediate, read_size(text, "intermediate_size", 4, max_width, 4));
  std::vector<Layer> layers;
  for (const LayerKind kind : kinds) {
    layer.kind = kind;
    layer.kv_layer = static_cast<uint32_t>(layers.size());
    layer.rope = ropes[size_t(kind)];
    layer.rope.rotated_pairs = layer.head_dim / 2;
    layers.push_back(layer);
  }
  return layers;
}

}  // namespace

Result<Config> read_gemma3_text(JsonObject& text) {
  TRY(check_features(text));
  TRY(expect_one_of(text, "attn_logit_softcapping", {nullptr}));
  Config config;
  config.family = Family::gemma3;
  TRY_ASSIGN(config.vocabulary,
             read_size_or(text, "vocab_size", default_vocabulary, 1, max_vocabulary));
  TRY_ASSIGN(config.hidden, read_size(text, "hidden_size", 4, max_width, 4));
  TRY_ASSIGN(config.heads, read_size_or(text, "num_attention_heads", default_heads, 1, max_heads));
  TRY_ASSIGN(config.window, read_size(text, "sliding_window", 1, max_positions));
  TRY_ASSIGN(config.max_positions,
             read_size_or(text, "max_position_embeddings", default_positions, 1, max_positions));
  TRY_ASSIGN(config.query_scalar,
             read_positive_or(text, "query_pre_attn_scalar", default_query_scalar));
  TRY(read_numbers(text, config));
  TRY_ASSIGN(config.layers, read_layers(text, config.heads));
  TRY_ASSIGN(config.bos, read_size_or(text, "bos_token_id", default_bos, 0, max_vocabulary));
  TRY_ASSIGN(config.pad, read_size_or(text, "pad_token_id", default_pad, 0, max_vocabulary));
  config.eos = {default_eos};
  if (text.has("eos_token_id")) {
    TRY_ASSIGN(config.eos, read_eos(text));
  }
  TRY(check_tokens(config, text));
  TRY(text.finish());
  return config;
}

Json gemma3_json(const Config& config) {
  const Layer& first = config.layers.front();
  Json json = {{"bos_token_id", config.bos},
               {"eos_token_id", config.eos},
               {"head_dim", first.head_dim},
               {"hidden_activation", "gelu_pytorch_tanh"},
               {"hidden_size", config.hidden},
               {"intermediate_size", first.intermediate},
               {"max_position_embeddings", config.max_positions},
               {"model_type", "gemma3_text"},
               {"num_attention_heads", config.heads},
               {"num_hidden_layers", config.layers.size()},
               {"num_key_value_heads", first.kv_heads},
               {"pad_token_id", config.pad},
               {"query_pre_attn_scalar", config.query_scalar},
               {"rms_norm_eps", config.rms_norm_epsilon},
               {"sliding_window", config.window},
               {"tie_word_embeddings", true},
               {"vocab_size", config.vocabulary}};
  if (config.softcap) json["final_logit_softcapping"] = *config.softcap;
  for (const Layer& layer : config.layers) {
    json["layer_types"].push_back(name(layer.kind));
    json["rope_parameters"][std::string(name(layer.kind))] = {
        {"factor", layer.rope.factor}, {"rope_theta", layer.rope.theta}, {"rope_type", "linear"}};
  }
  return json;
}

}  // namespace tandem::spec
