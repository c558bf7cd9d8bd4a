// The registry's rows, and the rules for what a checkpoint may hold beyond them.
#include "spec/tensors.h"

#include <fmt/format.h>

#include <charconv>
#include <utility>

namespace tandem::spec {
namespace {

constexpr std::string_view assistant_prefix = "assistant.";

// Collects the tensors of `model`, a prefix of their names in the artifact. `prefix` begins their
// names there and in the checkpoint.
struct Registry {
  std::string_view model;
  float norm_offset = 0;
  std::vector<Tensor> tensors = {};
  std::string prefix = {};

  void add(std::string_view name, TensorClass tensor_class, Join join, uint32_t columns,
           std::initializer_list<std::pair<std::string_view, uint32_t>> sources) {
    Tensor tensor{fmt::format("{}{}{}", model, prefix, name), tensor_class, 0, columns, join, {}};
    for (const auto& [source, rows] : sources) {
      if (rows == 0) continue;
      tensor.sources.push_back({prefix + std::string(source), rows, columns});
      tensor.rows += rows;
    }
    tensors.push_back(std::move(tensor));
  }
  void vector(std::string_view name, std::string_view source, uint32_t size) {
    add(name, TensorClass::vector, Join::concatenate, size, {{source, 1}});
  }
  void norm(std::string_view name, std::string_view source, uint32_t size) {
    vector(name, source, size);
    tensors.back().offset = norm_offset;
  }
  void table(std::string_view name, std::string_view source, uint32_t rows, uint32_t columns) {
    add(name, TensorClass::table, Join::concatenate, columns, {{source, rows}});
  }
  void matrix(std::string_view name, std::string_view source, uint32_t rows, uint32_t columns) {
    add(name, TensorClass::matrix, Join::concatenate, columns, {{source, rows}});
  }
};

void add_layer(Registry& registry, const Config& config, uint32_t index) {
  const Layer& layer = config.layers[index];
  const bool owns = !config.shares_kv(index);
  const uint32_t hidden = config.hidden;
  const uint32_t q_rows = config.heads * layer.head_dim;
  const uint32_t k_rows = owns ? layer.kv_heads * layer.head_dim : 0;
  const uint32_t v_rows = layer.key_is_value ? 0 : k_rows;

  registry.prefix = fmt::format("layers.{}.", index);
  registry.norm("attention_norm", "input_layernorm.weight", hidden);
  registry.norm("q_norm", "self_attn.q_norm.weight", layer.head_dim);
  if (owns) registry.norm("k_norm", "self_attn.k_norm.weight", layer.head_dim);
  registry.add("qkv", TensorClass::matrix, Join::concatenate, hidden,
               {{"self_attn.q_proj.weight", q_rows},
                {"self_attn.k_proj.weight", k_rows},
                {"self_attn.v_proj.weight", v_rows}});
  registry.matrix("attention_output", "self_attn.o_proj.weight", hidden, q_rows);
  registry.norm("post_attention_norm", "post_attention_layernorm.weight", hidden);
  registry.norm("mlp_norm", "pre_feedforward_layernorm.weight", hidden);
  registry.add(
      "gate_up", TensorClass::matrix, Join::interleave, hidden,
      {{"mlp.gate_proj.weight", layer.intermediate}, {"mlp.up_proj.weight", layer.intermediate}});
  registry.matrix("down", "mlp.down_proj.weight", hidden, layer.intermediate);
  registry.norm("post_mlp_norm", "post_feedforward_layernorm.weight", hidden);
  if (config.per_layer_input > 0) {
    registry.matrix("per_layer_gate", "per_layer_input_gate.weight", config.per_layer_input,
                    hidden);
    registry.matrix("per_layer_output", "per_layer_projection.weight", hidden,
                    config.per_layer_input);
    registry.norm("post_per_layer_norm", "post_per_layer_input_norm.weight", hidden);
  }
  if (config.scales_layers()) registry.vector("scalar", "layer_scalar", 1);
}

// Takes `prefix` off the front of `text`, if it is there.
bool consume(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

bool is_shared_kv(const Config& config, std::string_view name) {
  if (!consume(name, "layers.")) return false;
  uint32_t layer = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), layer);
  if (error != std::errc() || layer >= config.layers.size() || !config.shares_kv(layer)) {
    return false;
  }
  name.remove_prefix(static_cast<size_t>(end - name.data()));
  return name == ".self_attn.k_proj.weight" || name == ".self_attn.v_proj.weight" ||
         name == ".self_attn.k_norm.weight" || name == ".self_attn.v_norm.weight";
}

constexpr std::pair<std::string_view, std::string_view> ignored_prefixes[] = {
    {"vision_tower.", "vision tower"},    {"vision_embedder.", "vision embedder"},
    {"embed_vision.", "vision embedder"}, {"audio_tower.", "audio tower"},
    {"embed_audio.", "audio embedder"},   {"multi_modal_projector.", "multimodal projector"}};

}  // namespace

std::string_view name(TensorClass tensor_class) {
  switch (tensor_class) {
    case TensorClass::matrix:
      return "matrix";
    case TensorClass::table:
      return "table";
    case TensorClass::vector:
      return "vector";
    case TensorClass::ids:
      return "ids";
  }
  return "";
}

bool may_be(TensorClass tensor_class, WeightType type) {
  if (tensor_class == TensorClass::vector) return type == WeightType::f32;
  return (tensor_class == TensorClass::ids) == (type == WeightType::u32);
}

std::vector<Tensor> tensors(const Config& config) {
  Registry registry{"", config.norm_offset()};
  const uint32_t layers = static_cast<uint32_t>(config.layers.size());
  const uint32_t per_layer_width = layers * config.per_layer_input;
  registry.table("embedding", "embed_tokens.weight", config.vocabulary, config.hidden);
  if (config.per_layer_input > 0) {
    registry.table("per_layer_embedding", "embed_tokens_per_layer.weight", config.vocabulary,
                   per_layer_width);
    registry.matrix("per_layer_projection", "per_layer_model_projection.weight", per_layer_width,
                    config.hidden);
    registry.norm("per_layer_norm", "per_layer_projection_norm.weight", config.per_layer_input);
  }
  registry.norm("final_norm", "norm.weight", config.hidden);
  for (uint32_t i = 0; i < layers; ++i) add_layer(registry, config, i);
  return std::move(registry.tensors);
}

std::vector<Tensor> tensors(const AssistantConfig& config) {
  Registry registry{assistant_prefix};
  const Config& text = config.text;
  registry.table("embedding", "embed_tokens.weight", text.vocabulary, text.hidden);
  if (config.ordered) {
    registry.add("token_ordering", TensorClass::ids, Join::concatenate, text.vocabulary,
                 {{"masked_embedding.token_ordering", 1}});
    registry.matrix("centroids", "masked_embedding.centroids.weight", config.ordered->centroids,
                    text.hidden);
  }
  registry.matrix("pre_projection", "pre_projection.weight", text.hidden,
                  2 * config.backbone_hidden);
  registry.matrix("post_projection", "post_projection.weight", config.backbone_hidden, text.hidden);
  registry.norm("final_norm", "norm.weight", text.hidden);
  for (uint32_t i = 0; i < text.layers.size(); ++i) add_layer(registry, text, i);
  return std::move(registry.tensors);
}

bool is_assistants(std::string_view name) { return name.starts_with(assistant_prefix); }

std::string_view without_prefix(std::string_view name) {
  for (const std::string_view prefix :
       {"model.language_model.", "language_model.model.", "model."}) {
    if (consume(name, prefix)) break;
  }
  return name;
}

std::string_view ignored_by_rule(const Config& config, std::string_view name) {
  if (name == "lm_head.weight") return "output head, tied to the embedding";
  const std::string_view short_name = without_prefix(name);
  for (const auto& [prefix, reason] : ignored_prefixes) {
    if (short_name.starts_with(prefix)) return reason;
  }
  if (short_name.find("rotary_emb.") != short_name.npos && short_name.ends_with("inv_freq")) {
    return "rotary frequencies, computed from the config";
  }
  if (is_shared_kv(config, short_name)) return "K/V of a KV-shared layer";
  return {};
}

}  // namespace tandem::spec
