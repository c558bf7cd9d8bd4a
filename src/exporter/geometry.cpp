#include "exporter/geometry.h"

#include "base/error.h"
#include "base/json.h"

namespace tandem::exporter {
namespace {

struct Geometry {
  std::string_view name;
  uint32_t layers;
  uint32_t full_every;  // layers full_every - 1, 2 full_every - 1, ... are full
  uint32_t kv_shared;
  uint32_t hidden;
  uint32_t heads;
  uint32_t kv_heads;
  uint32_t head_dim;  // of sliding layers; full ones have twice that
  uint32_t window;
  uint32_t intermediate;
  bool double_wide;  // MLPs of KV-shared layers
  uint32_t per_layer_input;
  uint32_t vocabulary;
  uint32_t positions;
  uint32_t end_of_turn;
  // Of the assistant: three sliding layers and a full one, with the target's heads.
  uint32_t assistant_hidden;
  uint32_t assistant_heads;
  uint32_t assistant_intermediate;
  uint32_t centroids;
  uint32_t top_k;
};

// What all three have in common is in `config_json`. The tests hold them against whole configs in
// transformers' form (tests/spec/data). Of E4B, sizes, layers and KV sharing are well established;
// that its MLPs are 10240 wide throughout, none of them double, is what that config says and was
// not compared with a published checkpoint.
constexpr Geometry geometries[] = {
    {.name = "e2b",
     .layers = 35,
     .full_every = 5,
     .kv_shared = 20,
     .hidden = 1536,
     .heads = 8,
     .kv_heads = 1,
     .head_dim = 256,
     .window = 512,
     .intermediate = 6144,
     .double_wide = true,
     .per_layer_input = 256,
     .vocabulary = 262144,
     .positions = 131072,
     .end_of_turn = 106,
     .assistant_hidden = 256,
     .assistant_heads = 4,
     .assistant_intermediate = 2048,
     .centroids = 2048,
     .top_k = 32},
    {.name = "e4b",
     .layers = 42,
     .full_every = 6,
     .kv_shared = 18,
     .hidden = 2560,
     .heads = 8,
     .kv_heads = 2,
     .head_dim = 256,
     .window = 512,
     .intermediate = 10240,
     .double_wide = false,
     .per_layer_input = 256,
     .vocabulary = 262144,
     .positions = 131072,
     .end_of_turn = 106,
     .assistant_hidden = 256,
     .assistant_heads = 4,
     .assistant_intermediate = 2048,
     .centroids = 2048,
     .top_k = 32},
    {.name = "atlas",
     .layers = 10,
     .full_every = 5,
     .kv_shared = 4,
     .hidden = 256,
     .heads = 4,
     .kv_heads = 1,
     .head_dim = 64,
     .window = 128,
     .intermediate = 768,
     .double_wide = true,
     .per_layer_input = 32,
     .vocabulary = 8192,
     .positions = 8192,
     .end_of_turn = 5,
     .assistant_hidden = 128,
     .assistant_heads = 4,
     .assistant_intermediate = 256,
     .centroids = 256,
     .top_k = 16},
};

// What target and assistant have in common.
Json shared_json(const Geometry& geometry, uint32_t layers, uint32_t full_every) {
  Json kinds;
  for (uint32_t layer = 1; layer <= layers; ++layer) {
    const bool full = layer % full_every == 0;
    kinds.push_back(name(full ? spec::LayerKind::full : spec::LayerKind::sliding));
  }
  return {
      {"model_type", "gemma4_text"},
      {"hidden_activation", "gelu_pytorch_tanh"},
      {"num_hidden_layers", layers},
      {"layer_types", kinds},
      {"num_key_value_heads", geometry.kv_heads},
      {"head_dim", geometry.head_dim},
      {"global_head_dim", 2 * geometry.head_dim},
      {"sliding_window", geometry.window},
      {"attention_k_eq_v", false},
      {"vocab_size", geometry.vocabulary},
      {"max_position_embeddings", geometry.positions},
      {"rms_norm_eps", 1e-6},
      {"tie_word_embeddings", true},
      {"rope_parameters",
       {{"sliding_attention", {{"rope_type", "default"}, {"rope_theta", 1e4}}},
        {"full_attention",
         {{"rope_type", "proportional"}, {"rope_theta", 1e6}, {"partial_rotary_factor", 0.25}}}}},
      {"pad_token_id", 0},
      {"bos_token_id", 2},
      {"eos_token_id", {1, geometry.end_of_turn}}};
}

Json config_json(const Geometry& geometry) {
  Json json = shared_json(geometry, geometry.layers, geometry.full_every);
  json.update({{"hidden_size", geometry.hidden},
               {"num_kv_shared_layers", geometry.kv_shared},
               {"num_attention_heads", geometry.heads},
               {"intermediate_size", geometry.intermediate},
               {"use_double_wide_mlp", geometry.double_wide},
               {"hidden_size_per_layer_input", geometry.per_layer_input},
               {"vocab_size_per_layer_input", geometry.vocabulary},
               {"final_logit_softcapping", 30.0}});
  return json;
}

Json assistant_json(const Geometry& geometry) {
  constexpr uint32_t layers = 4;
  Json text = shared_json(geometry, layers, layers);
  text.update({{"hidden_size", geometry.assistant_hidden},
               {"num_kv_shared_layers", layers},
               {"num_attention_heads", geometry.assistant_heads},
               {"intermediate_size", geometry.assistant_intermediate},
               {"use_double_wide_mlp", false},
               {"hidden_size_per_layer_input", 0}});
  return {{"model_type", "gemma4_assistant"},    {"backbone_hidden_size", geometry.hidden},
          {"tie_word_embeddings", true},         {"use_ordered_embeddings", true},
          {"num_centroids", geometry.centroids}, {"centroid_intermediate_top_k", geometry.top_k},
          {"text_config", std::move(text)}};
}

Result<const Geometry*> find(std::string_view name) {
  for (const Geometry& known : geometries) {
    if (known.name == name) return &known;
  }
  return fail(ErrorCode::not_found, "geometry {}: expected one of {}", name, geometry_names());
}

}  // namespace

std::string geometry_names() {
  std::string names;
  for (const Geometry& known : geometries)
    names.append(names.empty() ? "" : ", ").append(known.name);
  return names;
}

Result<spec::Config> geometry(std::string_view name) {
  TRY_ASSIGN(const Geometry* const known, find(name));
  return spec::read_config(config_json(*known).dump(), name);
}

Result<spec::AssistantConfig> assistant_geometry(std::string_view name) {
  TRY_ASSIGN(const Geometry* const known, find(name));
  return spec::read_assistant_config(assistant_json(*known).dump(), name);
}

}  // namespace tandem::exporter
