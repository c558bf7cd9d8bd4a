// The one registry of a model's tensors: what the exporter reads, the artifact holds, and the model
// and its reference ask for by name.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "spec/config.h"
#include "spec/layout.h"

namespace tandem::spec {

// What the recipe chooses a type for.
enum class TensorClass {
  matrix,  // weights of a linear map
  table,   // rows looked up by token id (the embedding is also the output head)
  vector,  // norm weights and layer scalars: always f32
  ids,     // token ids: always u32
};

std::string_view name(TensorClass tensor_class);

// Whether tensors of a class may be stored as a type, if their columns fit it.
bool may_be(TensorClass tensor_class, WeightType type);

// How the rows of several source tensors become one matrix.
enum class Join {
  concatenate,  // the rows of the first source, then of the second, ...
  interleave,   // row 0 of each source, row 1 of each source, ... (gate and up: one kernel reads
                // both)
};

struct Source {
  std::string name;   // in the checkpoint, without what comes before in it (without_prefix)
  uint32_t rows = 0;  // a vector, or ids, of n has rows 1, columns n
  uint32_t columns = 0;
};

struct Tensor {
  std::string name;  // in the artifact
  TensorClass tensor_class = TensorClass::matrix;
  uint32_t rows = 0;
  uint32_t columns = 0;
  Join join = Join::concatenate;
  std::vector<Source> sources;  // without repeats
  float offset = 0;             // Config::norm_offset, if it is a norm's weight
};

// All tensors of the target, in artifact order: tables first, then by layer.
//
//   embedding                  table  [vocabulary, hidden]
//   per_layer_embedding        table  [vocabulary, layers * per_layer_input]
//   per_layer_projection       matrix [layers * per_layer_input, hidden]
//   per_layer_norm             vector [per_layer_input]
//   final_norm                 vector [hidden]
//   layers.N.attention_norm, post_attention_norm, mlp_norm, post_mlp_norm, post_per_layer_norm
//                              vectors [hidden]
//   layers.N.q_norm, k_norm    vectors [head_dim] (k_norm: owning layers only)
//   layers.N.qkv               matrix [(heads + 2 kv_heads) * head_dim, hidden]: q, then k, then v;
//                              k_eq_v layers: q then k; KV-shared layers: q alone
//   layers.N.attention_output  matrix [hidden, heads * head_dim]
//   layers.N.gate_up           matrix [2 * intermediate, hidden], interleaved: row 2i is gate i,
//                              row 2i + 1 is up i
//   layers.N.down              matrix [hidden, intermediate]
//   layers.N.per_layer_gate    matrix [per_layer_input, hidden]
//   layers.N.per_layer_output  matrix [hidden, per_layer_input]
//   layers.N.scalar            vector [1]
// Without per-layer inputs all tensors named per_layer are absent, and Gemma 3 has no scalar.
std::vector<Tensor> tensors(const Config& config);

// All tensors of the assistant, which follow the target's in an artifact. Their names begin with
// "assistant.":
//
//   embedding        table  [vocabulary, hidden]
//   token_ordering   ids    [vocabulary]                   with ordered embeddings
//   centroids        matrix [centroids, hidden]            with ordered embeddings
//   pre_projection   matrix [hidden, 2 * backbone_hidden]
//   post_projection  matrix [backbone_hidden, hidden]
//   final_norm       vector [hidden]
//   layers.N...      as those of the target's KV-shared layers
std::vector<Tensor> tensors(const AssistantConfig& config);

// Whether a tensor, or a plane of one, is the assistant's.
bool is_assistants(std::string_view name);

// A checkpoint tensor's name without "model.language_model.", "language_model.model." or "model.",
// as in Source.
std::string_view without_prefix(std::string_view name);

// Why a checkpoint tensor that no registry row names may be left out ("K/V of a KV-shared layer",
// "vision tower", ...); empty if it may not. `name` is the full name in the checkpoint.
std::string_view ignored_by_rule(const Config& config, std::string_view name);

}  // namespace tandem::spec
