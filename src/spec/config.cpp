// Reads and writes the geometry of a Gemma 4 text model and of its assistant in Hugging Face's
// config.json form, and finds which family a config is of.
#include "spec/config.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>

#include "spec/config_fields.h"

namespace tandem::spec {
namespace {

// What a missing layer_types means: every 6th layer and the last are full.
constexpr uint32_t default_full_period = 6;

// Keys of experts, without meaning while enable_moe_block is false.
constexpr std::string_view expert_keys[] = {"moe_intermediate_size", "top_k_experts"};

// Keys of a multimodal config that concern images, audio and video only.
constexpr std::string_view multimodal_keys[] = {
    "audio_config",    "audio_token_id",    "boa_token_id",
    "boi_token_id",    "boi_token_index",   "eoa_token_id",
    "eoa_token_index", "eoi_token_id",      "eoi_token_index",
    "image_token_id",  "image_token_index", "mm_tokens_per_image",
    "video_token_id",  "vision_config",     "vision_soft_tokens_per_image"};

// Whose layers a config describes: an assistant's own no K/V.
enum class Part { target, assistant };

// Refuses what would change the computation in a way that is not built.
Result<void> check_text_features(JsonObject& text) {
  TRY(check_features(text));
  TRY(expect_one_of(text, "enable_moe_block", {false}));
  TRY(expect_one_of(text, "num_experts", {nullptr, 0u}));
  for (const std::string_view key : expert_keys) text.skip(key);
  return {};
}

Result<std::vector<LayerKind>> read_layer_kinds(JsonObject& text) {
  TRY_ASSIGN(const uint32_t count, read_size(text, "num_hidden_layers", 1, max_layers));
  TRY_ASSIGN(const auto types, read_layer_types(text, count));
  std::vector<LayerKind> kinds;
  for (uint32_t i = 0; !types && i < count; ++i) {
    const bool full = (i + 1) % default_full_period == 0 || i + 1 == count;
    kinds.push_back(full ? LayerKind::full : LayerKind::sliding);
  }
  if (!types) return kinds;
  if (types->back() != LayerKind::full) {
    return fail(ErrorCode::bad_value,
                "{}[{}]: expected full_attention as the last layer (transformers makes it so, "
                "whatever the file says), found sliding_attention",
                text.where("layer_types"), count - 1);
  }
  return *types;
}

// What a layer's entry in per_layer_config sets.
struct Override {
  std::optional<uint32_t> head_dim;
  std::optional<uint32_t> kv_heads;
};

// The entries by layer; empty if the key is missing.
Result<std::optional<std::map<uint32_t, Override>>> read_overrides(JsonObject& text,
                                                                   size_t layers) {
  TRY_ASSIGN(std::optional<JsonObject> entries, text.nullable<JsonObject>("per_layer_config"));
  if (!entries) return std::nullopt;
  std::map<uint32_t, Override> overrides;
  for (const std::string& key : entries->keys()) {
    uint32_t layer = 0;
    std::from_chars(key.data(), key.data() + key.size(), layer);
    if (std::to_string(layer) != key || layer >= layers) {
      return fail(ErrorCode::bad_value, "{}: expected the number of a layer, 0 to {}",
                  entries->where(key), layers - 1);
    }
    TRY_ASSIGN(JsonObject entry, entries->get<JsonObject>(key));
    TRY_ASSIGN(overrides[layer].head_dim, entry.nullable<uint32_t>("head_dim"));
    TRY_ASSIGN(overrides[layer].kv_heads, entry.nullable<uint32_t>("num_key_value_heads"));
    TRY(entry.finish());
  }
  return overrides;
}

// A size that all layers of a kind share, and the key it came from.
struct Shared {
  uint32_t value = 0;
  std::string where;
};

// A size of the sliding and of the full layers, from `key`, from the key for full layers, and from
// per_layer_config. Where two sources speak about one layer, they must agree.
Result<std::array<Shared, 2>> read_by_kind(
    JsonObject& text, std::string_view key, std::string_view full_key,
    const std::vector<LayerKind>& kinds,
    const std::optional<std::map<uint32_t, Override>>& overrides,
    std::optional<uint32_t> Override::*member) {
  TRY_ASSIGN(const uint32_t base, text.get<uint32_t>(key));
  TRY_ASSIGN(const std::optional<uint32_t> full, text.nullable<uint32_t>(full_key));
  std::array<std::optional<Shared>, 2> found;
  if (full) found[size_t(LayerKind::full)] = {*full, text.where(full_key)};
  for (uint32_t layer = 0; layer < kinds.size(); ++layer) {
    Shared candidate{base, text.where(key)};
    if (overrides) {
      const auto entry = overrides->find(layer);
      if (entry != overrides->end() && entry->second.*member) {
        candidate = {*(entry->second.*member),
                     fmt::format("{}.{}.{}", text.where("per_layer_config"), layer, key)};
      }
    } else if (full && kinds[layer] == LayerKind::full) {
      continue;
    }
    std::optional<Shared>& known = found[size_t(kinds[layer])];
    if (!known) known = candidate;
    if (known->value != candidate.value) {
      return contradiction(known->where, known->value,
                           fmt::format("{} (for layer {})", candidate.where, layer),
                           candidate.value);
    }
  }
  // A model without sliding layers takes no notice of the sliding size.
  for (std::optional<Shared>& shared : found) {
    if (!shared) shared = {base, text.where(key)};
  }
  return std::array<Shared, 2>{*found[0], *found[1]};
}

// The RoPE of layers of a kind.
Result<Rope> read_rope(JsonObject& parameters, LayerKind kind, uint32_t head_dim) {
  TRY_ASSIGN(JsonObject rope, parameters.get<JsonObject>(name(kind)));
  TRY_ASSIGN(const std::string type, rope.get<std::string>("rope_type"));
  TRY_ASSIGN(const double theta, read_positive(rope, "rope_theta"));
  TRY_ASSIGN(const auto factor, rope.nullable<double>("partial_rotary_factor"));
  TRY(rope.finish());
  const double rotated = factor.value_or(1);
  if (!(rotated >= 0 && rotated <= 1)) {
    return fail(ErrorCode::bad_value, "{}: expected 0 to 1, found {}",
                rope.where("partial_rotary_factor"), rotated);
  }
  if (type == "default") {
    if (rotated == 1) return Rope{theta, head_dim / 2};
    return fail(ErrorCode::unsupported,
                "{}: a partial rotation of {} is built for rope_type \"proportional\" only, found "
                "\"default\"",
                rope.where("partial_rotary_factor"), rotated);
  }
  if (type == "proportional") {
    return Rope{theta, static_cast<uint32_t>(std::floor(rotated * head_dim / 2))};
  }
  return fail(ErrorCode::unsupported, "{}: expected \"default\" or \"proportional\", found \"{}\"",
              rope.where("rope_type"), type);
}

// Layers of each kind share everything but the MLP's width and the K/V they read.
Result<std::array<Layer, 2>> read_attention(JsonObject& text, const std::vector<LayerKind>& kinds,
                                            uint32_t heads) {
  TRY_ASSIGN(const auto overrides, read_overrides(text, kinds.size()));
  TRY_ASSIGN(const bool key_is_value, read_flag(text, "attention_k_eq_v"));
  TRY_ASSIGN(const auto full_dim, text.nullable<uint32_t>("global_head_dim"));
  if (!overrides && !full_dim) {
    return fail(ErrorCode::missing_key,
                "{}: the key is missing, and per_layer_config, which may take its place, too",
                text.where("global_head_dim"));
  }
  TRY_ASSIGN(const auto head_dims, read_by_kind(text, "head_dim", "global_head_dim", kinds,
                                                overrides, &Override::head_dim));
  TRY_ASSIGN(const auto kv_heads,
             read_by_kind(text, "num_key_value_heads", "num_global_key_value_heads", kinds,
                          overrides, &Override::kv_heads));
  if (!key_is_value && kv_heads[0].value != kv_heads[1].value && !overrides) {
    // transformers reads num_global_key_value_heads only where keys are values.
    return contradiction(kv_heads[0].where, kv_heads[0].value,
                         kv_heads[1].where + " (without attention_k_eq_v)", kv_heads[1].value);
  }
  TRY_ASSIGN(JsonObject ropes, text.get<JsonObject>("rope_parameters"));
  std::array<Layer, 2> layers;
  for (const LayerKind kind : {LayerKind::sliding, LayerKind::full}) {
    Layer& layer = layers[size_t(kind)];
    const Shared& dim = head_dims[size_t(kind)];
    const Shared& kv = kv_heads[size_t(kind)];
    layer.kind = kind;
    layer.key_is_value = key_is_value && kind == LayerKind::full;
    TRY_ASSIGN(layer.head_dim, checked_size(dim.value, dim.where, 2, max_head_dim, 2));
    TRY_ASSIGN(layer.kv_heads, checked_kv_heads(kv.value, kv.where, heads));
    const bool used = std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
    if (used || ropes.has(name(kind))) {
      TRY_ASSIGN(layer.rope, read_rope(ropes, kind, layer.head_dim));
    }
  }
  TRY(ropes.finish());
  return layers;
}

// How many of the first layers own K/V.
Result<uint32_t> read_owning(JsonObject& text, uint32_t layers, Part part) {
  constexpr std::string_view key = "num_kv_shared_layers";
  TRY_ASSIGN(const auto given, text.nullable<uint32_t>(key));
  const uint32_t shared = given.value_or(0);
  if (part == Part::assistant) {
    if (shared == layers) return 0;
    return fail(ErrorCode::unsupported,
                "{}: expected all {} layers of the assistant, which reads the target's K/V, found "
                "{}",
                text.where(key), layers, shared);
  }
  if (shared < layers) return layers - shared;
  return fail(ErrorCode::bad_value,
              "{}: expected less than the {} layers, as one must own its K/V, found {}",
              text.where(key), layers, shared);
}

Result<std::vector<Layer>> read_layers(JsonObject& text, uint32_t heads, Part part) {
  TRY_ASSIGN(const std::vector<LayerKind> kinds, read_layer_kinds(text));
  TRY_ASSIGN(const auto by_kind, read_attention(text, kinds, heads));
  TRY_ASSIGN(const uint32_t intermediate, read_size(text, "intermediate_size", 4, max_width, 4));
  TRY_ASSIGN(const bool double_wide, read_flag(text, "use_double_wide_mlp"));
  const uint32_t count = static_cast<uint32_t>(kinds.size());
  TRY_ASSIGN(const uint32_t owning, read_owning(text, count, part));
  std::array<std::optional<uint32_t>, 2> donor;
  if (part == Part::assistant) donor = {of_target, of_target};
  std::vector<Layer> layers;
  for (uint32_t i = 0; i < count; ++i) {
    Layer layer = by_kind[size_t(kinds[i])];
    std::optional<uint32_t>& last_owner = donor[size_t(kinds[i])];
    const bool owns = i < owning;
    if (owns) last_owner = i;
    if (!last_owner) {
      return fail(ErrorCode::bad_value,
                  "{}: {} leaves no {} layer that owns K/V for layer {} to read",
                  text.where("num_kv_shared_layers"), count - owning, name(kinds[i]), i);
    }
    layer.kv_layer = *last_owner;
    // transformers doubles nothing where no layer owns K/V.
    layer.intermediate = double_wide && !owns && owning > 0 ? 2 * intermediate : intermediate;
    layer.key_is_value = layer.key_is_value && owns;
    layers.push_back(layer);
  }
  return layers;
}

// The width of per-layer inputs; their table must have a row for every token.
Result<uint32_t> read_per_layer_input(JsonObject& text, uint32_t vocabulary) {
  TRY_ASSIGN(const auto width, text.nullable<uint32_t>("hidden_size_per_layer_input"));
  TRY_ASSIGN(const auto rows, text.nullable<uint32_t>("vocab_size_per_layer_input"));
  if (!width || *width == 0) return 0;
  if (rows && *rows != vocabulary) {
    return contradiction(text.where("vocab_size"), vocabulary,
                         text.where("vocab_size_per_layer_input"), *rows);
  }
  return checked_size(*width, text.where("hidden_size_per_layer_input"), 4, max_width / max_layers,
                      4);
}

Result<Config> read_gemma4_text(JsonObject& text, Part part) {
  TRY(check_text_features(text));
  Config config;
  TRY_ASSIGN(config.vocabulary, read_size(text, "vocab_size", 1, max_vocabulary));
  TRY_ASSIGN(config.hidden, read_size(text, "hidden_size", 4, max_width, 4));
  TRY_ASSIGN(config.heads, read_size(text, "num_attention_heads", 1, max_heads));
  TRY_ASSIGN(config.window, read_size(text, "sliding_window", 1, max_positions));
  TRY_ASSIGN(config.max_positions, read_size(text, "max_position_embeddings", 1, max_positions));
  TRY_ASSIGN(config.per_layer_input, read_per_layer_input(text, config.vocabulary));
  TRY(read_numbers(text, config));
  TRY_ASSIGN(config.layers, read_layers(text, config.heads, part));
  TRY_ASSIGN(config.bos, text.get<uint32_t>("bos_token_id"));
  TRY_ASSIGN(config.pad, text.get<uint32_t>("pad_token_id"));
  TRY_ASSIGN(config.eos, read_eos(text));
  TRY(check_tokens(config, text));
  TRY(text.finish());
  return config;
}

// A text config, of the family that its model_type names.
Result<Config> read_text(JsonObject& text, Part part) {
  if (part == Part::assistant) {
    TRY(expect_one_of(text, "model_type", {"gemma4_text"}));
    return read_gemma4_text(text, part);
  }
  TRY(expect_one_of(text, "model_type", {"gemma4_text", "gemma3_text"}));
  TRY_ASSIGN(const auto type, text.nullable<std::string>("model_type"));
  return type == "gemma3_text" ? read_gemma3_text(text) : read_gemma4_text(text, part);
}

// The text_config of a larger config, with the stop tokens of the whole where it names any.
Result<Config> read_nested(JsonObject& root, Part part) {
  TRY(expect_one_of(root, "tie_word_embeddings", {true}));
  skip_harmless(root);
  for (const std::string_view key : multimodal_keys) root.skip(key);
  TRY_ASSIGN(JsonObject text, root.get<JsonObject>("text_config"));
  TRY_ASSIGN(Config config, read_text(text, part));
  TRY_ASSIGN(const auto bos, root.nullable<uint32_t>("bos_token_id"));
  TRY_ASSIGN(const auto pad, root.nullable<uint32_t>("pad_token_id"));
  TRY_ASSIGN(const auto eos, root.nullable<JsonValue>("eos_token_id"));
  if (bos && *bos != config.bos) {
    return contradiction(root.where("bos_token_id"), *bos, text.where("bos_token_id"), config.bos);
  }
  if (pad && *pad != config.pad) {
    return contradiction(root.where("pad_token_id"), *pad, text.where("pad_token_id"), config.pad);
  }
  if (eos) {
    TRY_ASSIGN(config.eos, read_eos(root));
    TRY(check_tokens(config, root));
  }
  return config;
}

Result<Config> read_multimodal(JsonObject& root) {
  TRY(expect_one_of(root, "model_type", {"gemma4", "gemma3"}));
  TRY_ASSIGN(Config config, read_nested(root, Part::target));
  TRY_ASSIGN(const auto type, root.nullable<std::string>("model_type"));
  if (type && *type != name(config.family)) {
    return contradiction(root.where("model_type"), *type,
                         "the family of " + root.where("text_config"),
                         std::string(name(config.family)));
  }
  TRY(root.finish());
  return config;
}

Result<std::optional<OrderedHead>> read_ordered_head(JsonObject& root, uint32_t vocabulary) {
  TRY_ASSIGN(const bool ordered, root.get<bool>("use_ordered_embeddings"));
  if (!ordered) {
    root.skip("num_centroids");
    root.skip("centroid_intermediate_top_k");
    return std::nullopt;
  }
  OrderedHead head;
  TRY_ASSIGN(head.centroids, read_size(root, "num_centroids", 1, vocabulary));
  if (vocabulary % head.centroids != 0) {
    return fail(ErrorCode::bad_value, "{}: expected a divisor of the vocabulary of {}, found {}",
                root.where("num_centroids"), vocabulary, head.centroids);
  }
  TRY_ASSIGN(head.top_k, read_size(root, "centroid_intermediate_top_k", 1, head.centroids));
  return head;
}

Result<AssistantConfig> read_assistant(JsonObject& root) {
  TRY(expect_one_of(root, "model_type", {"gemma4_assistant"}));
  AssistantConfig config;
  TRY_ASSIGN(config.text, read_nested(root, Part::assistant));
  if (config.text.per_layer_input != 0) {
    return fail(ErrorCode::unsupported,
                "{}: per-layer inputs are not built for an assistant: expected 0, found {}",
                root.where("text_config.hidden_size_per_layer_input"), config.text.per_layer_input);
  }
  TRY_ASSIGN(config.backbone_hidden, read_size(root, "backbone_hidden_size", 4, max_width, 4));
  TRY_ASSIGN(config.ordered, read_ordered_head(root, config.text.vocabulary));
  TRY(root.finish());
  return config;
}

// A partial_rotary_factor that read_rope turns into this number of pairs.
double rotary_factor(uint32_t rotated_pairs, uint32_t head_dim) {
  const double factor = 2.0 * rotated_pairs / head_dim;
  const bool rounded_down = std::floor(factor * head_dim / 2) < rotated_pairs;
  return rounded_down ? std::nextafter(factor, 2.0) : factor;
}

// The keys that matter, in one choice among their forms.
Json gemma4_json(const Config& config) {
  const Layer& first = config.layers.front();
  Json json = {{"attention_k_eq_v", false},
               {"bos_token_id", config.bos},
               {"eos_token_id", config.eos},
               {"head_dim", first.head_dim},
               {"hidden_activation", "gelu_pytorch_tanh"},
               {"hidden_size", config.hidden},
               {"hidden_size_per_layer_input", config.per_layer_input},
               {"intermediate_size", first.intermediate},
               {"max_position_embeddings", config.max_positions},
               {"model_type", "gemma4_text"},
               {"num_attention_heads", config.heads},
               {"num_hidden_layers", config.layers.size()},
               {"num_key_value_heads", first.kv_heads},
               {"num_kv_shared_layers", config.layers.size() - config.owning_layers()},
               {"pad_token_id", config.pad},
               {"rms_norm_eps", config.rms_norm_epsilon},
               {"sliding_window", config.window},
               {"tie_word_embeddings", true},
               {"use_double_wide_mlp", config.layers.back().intermediate != first.intermediate},
               {"vocab_size", config.vocabulary},
               {"vocab_size_per_layer_input", config.vocabulary}};
  if (config.softcap) json["final_logit_softcapping"] = *config.softcap;
  for (size_t i = 0; i < config.layers.size(); ++i) {
    const Layer& layer = config.layers[i];
    json["layer_types"].push_back(name(layer.kind));
    json["rope_parameters"][std::string(name(layer.kind))] = {
        {"partial_rotary_factor", rotary_factor(layer.rope.rotated_pairs, layer.head_dim)},
        {"rope_theta", layer.rope.theta},
        {"rope_type", "proportional"}};
    if (layer.key_is_value) json["attention_k_eq_v"] = true;
    if (layer.kind == LayerKind::full) {
      json["per_layer_config"][std::to_string(i)] = {{"head_dim", layer.head_dim},
                                                     {"num_key_value_heads", layer.kv_heads}};
    }
  }
  return json;
}

}  // namespace

std::string_view name(Family family) { return family == Family::gemma4 ? "gemma4" : "gemma3"; }

std::string_view name(LayerKind kind) {
  return kind == LayerKind::sliding ? "sliding_attention" : "full_attention";
}

uint32_t Config::owning_layers() const {
  uint32_t count = 0;
  while (count < layers.size() && !shares_kv(count)) ++count;
  return count;
}

std::optional<uint32_t> Config::donor(LayerKind kind) const {
  for (uint32_t i = owning_layers(); i > 0; --i) {
    if (layers[i - 1].kind == kind) return i - 1;
  }
  return std::nullopt;
}

Result<Config> read_config(std::string_view text, std::string_view where) {
  Json json;
  TRY_ASSIGN(JsonObject root, open_json_object(text, where, json));
  return root.has("text_config") ? read_multimodal(root) : read_text(root, Part::target);
}

Result<AssistantConfig> read_assistant_config(std::string_view text, std::string_view where) {
  Json json;
  TRY_ASSIGN(JsonObject root, open_json_object(text, where, json));
  return read_assistant(root);
}

std::string canonical_config(const Config& config) {
  return canonical_json(config.family == Family::gemma3 ? gemma3_json(config)
                                                        : gemma4_json(config));
}

std::string canonical_config(const AssistantConfig& config) {
  Json json = {{"backbone_hidden_size", config.backbone_hidden},
               {"model_type", "gemma4_assistant"},
               {"text_config", gemma4_json(config.text)},
               {"tie_word_embeddings", true},
               {"use_ordered_embeddings", config.ordered.has_value()}};
  if (config.ordered) {
    json["num_centroids"] = config.ordered->centroids;
    json["centroid_intermediate_top_k"] = config.ordered->top_k;
  }
  return canonical_json(json);
}

}  // namespace tandem::spec
