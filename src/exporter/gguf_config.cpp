// The geometry of a Gemma from a GGUF file.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "exporter/gguf_texts.h"

namespace tandem::exporter {
namespace {

constexpr std::string_view gemma4 = "gemma4";
constexpr std::string_view gemma4_assistant = "gemma4-assistant";
constexpr std::string_view gemma3 = "gemma3";

// What llama.cpp takes where a file does not say.
constexpr double default_sliding_theta = 1e4;
constexpr uint32_t gemma3_full_period = 6;
// Of Gemma 3, only the model of so many layers scales queries by the width per head, not by
// head_dim.
constexpr uint32_t gemma3_27b_layers = 62;
constexpr uint32_t max_layers = 1024;  // far beyond any Gemma

// Keys of experts and of what only training needs, without meaning in a model without experts.
constexpr std::string_view harmless_keys[] = {"expert_used_count", "expert_feed_forward_length",
                                              "rope.scaling.finetuned",
                                              "rope.scaling.original_context_length"};

// Reads keys that begin with the architecture.
class Geometry {
 public:
  Geometry(JsonObject& metadata, std::string architecture, const Checkpoint& checkpoint)
      : metadata_(metadata), architecture_(std::move(architecture)), checkpoint_(checkpoint) {}

  Result<Json> gemma4_text(const GgufTokens& tokens);
  Result<Json> gemma4_assistant_config(const GgufTokens& tokens);
  Result<Json> gemma3_text(const GgufTokens& tokens);
  // Refuses keys that were not read.
  Result<void> finish();

 private:
  std::string key(std::string_view name) const { return fmt::format("{}.{}", architecture_, name); }
  std::string where(std::string_view name) const { return metadata_.where(key(name)); }
  template <class T>
  Result<T> get(std::string_view name) {
    return metadata_.get<T>(key(name));
  }
  template <class T>
  Result<std::optional<T>> find(std::string_view name) {
    return metadata_.find<T>(key(name));
  }
  bool has_tensor(const std::string& name) const { return checkpoint_.tensors().contains(name); }

  Result<void> expect(std::string_view name, uint32_t expected, std::string_view of);
  Result<std::vector<uint32_t>> per_layer(std::string_view name);
  Result<std::vector<bool>> sliding_layers(std::optional<uint32_t> period);
  Result<uint32_t> vocabulary();
  Result<double> rotated_share(uint32_t head_dim);
  Result<Json> begin(const GgufTokens& tokens, std::optional<uint32_t> full_period);
  Result<void> add_mlp(Json& config, uint32_t kv_shared);
  Result<void> add_attention(Json& config);

  JsonObject& metadata_;
  std::string architecture_;
  const Checkpoint& checkpoint_;
  uint32_t layers_ = 0;
  std::vector<bool> sliding_;  // by layer
};

// A key that may be there must agree with another.
Result<void> Geometry::expect(std::string_view name, uint32_t expected, std::string_view of) {
  TRY_ASSIGN(const auto found, find<uint32_t>(name));
  if (found.value_or(expected) == expected) return {};
  return fail(ErrorCode::unsupported, "{}: expected {}, {}, found {}", where(name), expected, of,
              *found);
}

// One number for all layers, or one for each.
Result<std::vector<uint32_t>> Geometry::per_layer(std::string_view name) {
  TRY_ASSIGN(const JsonValue value, get<JsonValue>(name));
  if (!value.json().is_array()) {
    TRY_ASSIGN(const uint32_t number, value.as<uint32_t>());
    return std::vector<uint32_t>(layers_, number);
  }
  TRY_ASSIGN(std::vector<uint32_t> numbers, value.as<std::vector<uint32_t>>());
  if (numbers.size() == layers_) return numbers;
  return fail(ErrorCode::bad_value, "{}: expected one for each of the {} layers, found {}",
              value.where(), layers_, numbers.size());
}

// Which layers are sliding, from a list or a period, whose last layer is full.
Result<std::vector<bool>> Geometry::sliding_layers(std::optional<uint32_t> period) {
  constexpr std::string_view name = "attention.sliding_window_pattern";
  TRY_ASSIGN(const auto pattern, find<JsonValue>(name));
  if (pattern && pattern->json().is_array()) {
    TRY_ASSIGN(std::vector<bool> sliding, pattern->as<std::vector<bool>>());
    if (sliding.size() == layers_) return sliding;
    return fail(ErrorCode::bad_value, "{}: expected one for each of the {} layers, found {}",
                where(name), layers_, sliding.size());
  }
  if (pattern) {
    TRY_ASSIGN(period, pattern->as<uint32_t>());
  }
  if (!period) return fail(ErrorCode::missing_key, "{}: the key is missing", where(name));
  if (*period == 0)
    return fail(ErrorCode::bad_value, "{}: expected at least 1, found 0", where(name));
  std::vector<bool> sliding;
  for (uint32_t i = 1; i <= layers_; ++i) sliding.push_back(i % *period != 0);
  return sliding;
}

Result<uint32_t> Geometry::vocabulary() {
  const auto embedding = checkpoint_.tensors().find("embed_tokens.weight");
  if (embedding == checkpoint_.tensors().end()) {
    return fail(ErrorCode::malformed_checkpoint, "{}: tensor token_embd.weight is missing",
                metadata_.where());
  }
  const uint64_t rows = embedding->second.shape.front();
  if (rows > UINT32_MAX) {
    return fail(ErrorCode::malformed_checkpoint, "{}: token_embd.weight: {} rows are too many",
                metadata_.where(), rows);
  }
  const uint32_t tokens = static_cast<uint32_t>(rows);
  TRY(expect("vocab_size", tokens, "the rows of token_embd.weight"));
  return tokens;
}

// The share of a full layer's pairs that are rotated. rope_freqs.weight, which frequencies are
// divided by, is 1 for those and beyond all positions for the others, which come last.
Result<double> Geometry::rotated_share(uint32_t head_dim) {
  constexpr float out_of_reach = 1e10f;
  constexpr std::string_view name = "rope_freqs.weight";
  const auto found = checkpoint_.tensors().find("rotary_emb.inv_freq");
  const uint64_t pairs = head_dim / 2;
  if (found == checkpoint_.tensors().end() || found->second.dtype != "F32" ||
      found->second.shape != std::vector<uint64_t>{pairs}) {
    return fail(ErrorCode::malformed_checkpoint, "{}: tensor {}: expected F32 [{}], found {}",
                metadata_.where(), name, pairs,
                found == checkpoint_.tensors().end() ? "none" : "another type or shape");
  }
  std::vector<float> factors(pairs);
  TRY(checkpoint_.read(found->second, 0, std::as_writable_bytes(std::span(factors))));
  size_t rotated = 0;
  while (rotated < pairs && factors[rotated] == 1) ++rotated;
  const bool others_are_still =
      std::all_of(factors.begin() + static_cast<ptrdiff_t>(rotated), factors.end(),
                  [](float x) { return x >= out_of_reach; });
  if (!others_are_still) {
    return fail(ErrorCode::unsupported, "{}: tensor {}: expected ones, then {} and more, found {}",
                metadata_.where(), name, out_of_reach, factors[rotated]);
  }
  // Half a pair more, so that no rounding loses one.
  return std::min(1.0, (2.0 * static_cast<double>(rotated) + 0.5) / head_dim);
}

// What the families have in common.
Result<Json> Geometry::begin(const GgufTokens& tokens, std::optional<uint32_t> full_period) {
  TRY_ASSIGN(layers_, get<uint32_t>("block_count"));
  if (layers_ == 0 || layers_ > max_layers) {
    return fail(ErrorCode::bad_value, "{}: expected 1 to {}, found {}", where("block_count"),
                max_layers, layers_);
  }
  TRY_ASSIGN(sliding_, sliding_layers(full_period));
  for (const std::string_view name : harmless_keys) metadata_.skip(key(name));
  TRY(expect("expert_count", 0, "as experts are not built"));
  Json config = {{"num_hidden_layers", layers_},
                 {"tie_word_embeddings", true},
                 {"bos_token_id", tokens.bos},
                 {"pad_token_id", tokens.pad},
                 {"eos_token_id", tokens.eos},
                 {"layer_types", Json::array()},
                 {"hidden_activation", "gelu_pytorch_tanh"}};
  for (const bool sliding : sliding_) {
    config["layer_types"].push_back(
        name(sliding ? spec::LayerKind::sliding : spec::LayerKind::full));
  }
  TRY_ASSIGN(config["vocab_size"], vocabulary());
  TRY_ASSIGN(config["hidden_size"], get<uint32_t>("embedding_length"));
  TRY_ASSIGN(config["num_attention_heads"], get<uint32_t>("attention.head_count"));
  TRY_ASSIGN(config["sliding_window"], get<uint32_t>("attention.sliding_window"));
  TRY_ASSIGN(config["max_position_embeddings"], get<uint32_t>("context_length"));
  TRY_ASSIGN(config["rms_norm_eps"], get<double>("attention.layer_norm_rms_epsilon"));
  TRY_ASSIGN(const auto softcap, find<double>("final_logit_softcapping"));
  if (softcap) config["final_logit_softcapping"] = *softcap;
  return config;
}

// MLPs are as wide as the first one, but those of KV-shared layers may all be twice as wide.
Result<void> Geometry::add_mlp(Json& config, uint32_t kv_shared) {
  TRY_ASSIGN(const auto widths, per_layer("feed_forward_length"));
  const bool doubled = widths.back() != widths.front();
  for (uint32_t i = 0; i < layers_; ++i) {
    const bool wide = doubled && i + kv_shared >= layers_;
    const uint64_t expected = uint64_t{widths.front()} * (wide ? 2 : 1);
    if (widths[i] == expected) continue;
    return fail(ErrorCode::unsupported, "{}: layer {}: expected {}, found {}",
                where("feed_forward_length"), i, expected, widths[i]);
  }
  config["intermediate_size"] = widths.front();
  config["use_double_wide_mlp"] = doubled;
  return {};
}

Result<void> Geometry::add_attention(Json& config) {
  TRY_ASSIGN(const uint32_t full_dim, get<uint32_t>("attention.key_length"));
  TRY_ASSIGN(const uint32_t sliding_dim, get<uint32_t>("attention.key_length_swa"));
  TRY(expect("attention.value_length", full_dim, "the length of keys"));
  TRY(expect("attention.value_length_swa", sliding_dim, "the length of keys"));
  TRY(expect("rope.dimension_count", full_dim, "the length of keys"));
  TRY(expect("rope.dimension_count_swa", sliding_dim, "the length of keys"));
  TRY_ASSIGN(const auto kv_heads, per_layer("attention.head_count_kv"));
  config["head_dim"] = sliding_dim;
  config["num_key_value_heads"] = kv_heads.front();
  config["attention_k_eq_v"] = false;
  for (uint32_t i = 0; i < layers_; ++i) {
    config["per_layer_config"][std::to_string(i)] = {
        {"head_dim", sliding_[i] ? sliding_dim : full_dim}, {"num_key_value_heads", kv_heads[i]}};
    const std::string attention = fmt::format("layers.{}.self_attn.", i);
    if (!sliding_[i] && has_tensor(attention + "k_proj.weight") &&
        !has_tensor(attention + "v_proj.weight")) {
      config["attention_k_eq_v"] = true;
    }
  }
  TRY_ASSIGN(const double theta, get<double>("rope.freq_base"));
  TRY_ASSIGN(const auto sliding_theta, find<double>("rope.freq_base_swa"));
  TRY_ASSIGN(const double share, rotated_share(full_dim));
  config["rope_parameters"] = {
      {name(spec::LayerKind::sliding),
       {{"rope_type", "default"}, {"rope_theta", sliding_theta.value_or(default_sliding_theta)}}},
      {name(spec::LayerKind::full),
       {{"rope_type", "proportional"}, {"rope_theta", theta}, {"partial_rotary_factor", share}}}};
  return {};
}

Result<Json> Geometry::gemma4_text(const GgufTokens& tokens) {
  TRY_ASSIGN(Json config, begin(tokens, std::nullopt));
  config["model_type"] = "gemma4_text";
  TRY_ASSIGN(const auto shared, find<uint32_t>("attention.shared_kv_layers"));
  config["num_kv_shared_layers"] = shared.value_or(0);
  TRY(add_mlp(config, std::min(shared.value_or(0), layers_)));
  TRY(add_attention(config));
  TRY_ASSIGN(const auto per_layer_input, find<uint32_t>("embedding_length_per_layer_input"));
  config["hidden_size_per_layer_input"] = per_layer_input.value_or(0);
  return config;
}

Result<Json> Geometry::gemma4_assistant_config(const GgufTokens& tokens) {
  TRY_ASSIGN(Json text, gemma4_text(tokens));
  TRY(expect("nextn_predict_layers", layers_, "all layers"));
  Json config = {{"model_type", "gemma4_assistant"}, {"text_config", std::move(text)}};
  TRY_ASSIGN(config["backbone_hidden_size"], get<uint32_t>("embedding_length_out"));
  // llama.cpp's own converter leaves the centroids out: its head is the whole embedding.
  TRY_ASSIGN(const auto top_k, find<uint32_t>("centroid_top_k"));
  TRY_ASSIGN(const auto centroids, find<uint32_t>("n_centroids"));
  config["use_ordered_embeddings"] = top_k.has_value();
  if (top_k) config["centroid_intermediate_top_k"] = *top_k;
  if (centroids) config["num_centroids"] = *centroids;
  return config;
}

Result<Json> Geometry::gemma3_text(const GgufTokens& tokens) {
  TRY_ASSIGN(Json config, begin(tokens, gemma3_full_period));
  config["model_type"] = "gemma3_text";
  TRY_ASSIGN(config["intermediate_size"], get<uint32_t>("feed_forward_length"));
  TRY_ASSIGN(const uint32_t head_dim, get<uint32_t>("attention.key_length"));
  TRY(expect("attention.value_length", head_dim, "the length of keys"));
  TRY(expect("rope.dimension_count", head_dim, "the length of keys"));
  config["head_dim"] = head_dim;
  TRY_ASSIGN(config["num_key_value_heads"], get<uint32_t>("attention.head_count_kv"));
  const uint32_t heads = std::max(config["num_attention_heads"].get<uint32_t>(), 1u);
  config["query_pre_attn_scalar"] =
      layers_ == gemma3_27b_layers ? config["hidden_size"].get<uint32_t>() / heads : head_dim;
  TRY_ASSIGN(config["rope_theta"], get<double>("rope.freq_base"));
  TRY_ASSIGN(const auto sliding_theta, find<double>("rope.freq_base_swa"));
  config["rope_local_base_freq"] = sliding_theta.value_or(default_sliding_theta);
  TRY_ASSIGN(const auto scaling, find<std::string>("rope.scaling.type"));
  if (scaling.value_or("none") != "none") {
    TRY_ASSIGN(const double factor, get<double>("rope.scaling.factor"));
    config["rope_scaling"] = {{"rope_type", *scaling}, {"factor", factor}};
  }
  return config;
}

Result<void> Geometry::finish() {
  for (const std::string& key : metadata_.keys()) {
    if (!key.starts_with(architecture_ + ".")) metadata_.skip(key);
  }
  return metadata_.finish();
}

}  // namespace

Result<std::string> gguf_architecture(JsonObject& metadata) {
  constexpr std::string_view key = "general.architecture";
  TRY_ASSIGN(std::string architecture, metadata.get<std::string>(key));
  for (const std::string_view known : {gemma4, gemma4_assistant, gemma3}) {
    if (architecture == known) return architecture;
  }
  return fail(ErrorCode::unsupported, "{}: expected {}, {} or {}, found {}", metadata.where(key),
              gemma4, gemma4_assistant, gemma3, architecture);
}

Result<std::string> gguf_config(JsonObject& metadata, const GgufTokens& tokens,
                                const Checkpoint& checkpoint) {
  TRY_ASSIGN(const std::string architecture, gguf_architecture(metadata));
  Geometry geometry(metadata, architecture, checkpoint);
  Json config;
  if (architecture == gemma4) {
    TRY_ASSIGN(config, geometry.gemma4_text(tokens));
  } else if (architecture == gemma4_assistant) {
    TRY_ASSIGN(config, geometry.gemma4_assistant_config(tokens));
  } else {
    TRY_ASSIGN(config, geometry.gemma3_text(tokens));
  }
  TRY(geometry.finish());
  return config.dump();
}

}  // namespace tandem::exporter
