// The geometry of a Gemma text model and of Gemma 4's assistant, read from a checkpoint's
// config.json. Every size in the engine comes from here, and all that Gemma 3 does differently.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/error.h"

namespace tandem::spec {

enum class Family { gemma4, gemma3 };

std::string_view name(Family family);  // "gemma4", "gemma3"

enum class LayerKind { sliding, full };

std::string_view name(LayerKind kind);  // "sliding_attention", "full_attention"

// inv_freq(i) = theta^(-2i/head_dim) / factor for pairs i < rotated_pairs, and no rotation for the
// others. Pair i is elements (i, i + head_dim/2).
struct Rope {
  double theta = 0;
  uint32_t rotated_pairs = 0;
  double factor = 1;  // of linear scaling: how much further than it was trained for a model reaches
  bool operator==(const Rope&) const = default;
};

// The kv_layer of an assistant's layers, which read the target's donor of their kind.
inline constexpr uint32_t of_target = UINT32_MAX;

struct Layer {
  LayerKind kind = LayerKind::sliding;
  uint32_t head_dim = 0;
  uint32_t kv_heads = 0;
  uint32_t intermediate = 0;  // MLP width, already doubled where the config doubles it
  bool key_is_value = false;  // V is the raw k projection (before k norm and RoPE), then v norm
  uint32_t kv_layer = 0;  // the layer whose K/V it reads: its own index, its donor's, or of_target
  Rope rope;
  bool operator==(const Layer&) const = default;
};

struct Config {
  Family family = Family::gemma4;
  uint32_t vocabulary = 0;
  uint32_t hidden = 0;
  uint32_t heads = 0;
  uint32_t window = 0;           // sliding layers see positions p - window + 1 .. p
  uint32_t per_layer_input = 0;  // width of a layer's per-layer input; 0: the model has none
  uint32_t max_positions = 0;
  double rms_norm_epsilon = 0;
  double query_scalar = 1;        // queries are divided by its square root
  std::optional<double> softcap;  // logits = softcap * tanh(x / softcap)
  std::vector<Layer> layers;
  uint32_t bos = 0;
  uint32_t pad = 0;
  std::vector<uint32_t> eos;
  bool operator==(const Config&) const = default;

  double query_scale() const { return 1 / std::sqrt(query_scalar); }
  // Whether values are divided by their root mean square.
  bool norms_values() const { return family == Family::gemma4; }
  // Whether a layer's output is multiplied by a learned scalar.
  bool scales_layers() const { return family == Family::gemma4; }
  // What a norm adds to the weights that a Hugging Face checkpoint holds. The artifact, as the
  // kernels, has the sums.
  float norm_offset() const { return family == Family::gemma3 ? 1 : 0; }

  bool shares_kv(uint32_t layer) const { return layers[layer].kv_layer != layer; }
  // The number of leading layers that own K/V; all after them share.
  uint32_t owning_layers() const;
  // The last layer of a kind that owns K/V: what the layers of that kind after it, and those of an
  // assistant, read.
  std::optional<uint32_t> donor(LayerKind kind) const;
};

// The head of an assistant that scores only the tokens of the top_k centroids. Centroid c owns
// token_ordering[c * n .. c * n + n - 1], where n = vocabulary / centroids.
struct OrderedHead {
  uint32_t centroids = 0;  // a divisor of the vocabulary
  uint32_t top_k = 0;      // at most `centroids`
  bool operator==(const OrderedHead&) const = default;
};

// The drafter of a target. Whether the two fit is checked by spec/pair.h.
struct AssistantConfig {
  Config text;  // window, RoPE, epsilon, heads, vocabulary are its own; no layer owns K/V
  uint32_t backbone_hidden = 0;        // the target's hidden size
  std::optional<OrderedHead> ordered;  // none: the head is the whole embedding
  bool operator==(const AssistantConfig&) const = default;
};

// Reads the text of a Hugging Face config.json of Gemma 4 or Gemma 3 (a text config, or a
// multimodal one with a `text_config`). `where` names the file in messages. Fields that would
// change the computation in a way that is not built, and fields that contradict each other, are
// refused; fields known not to matter are skipped; any other is refused.
Result<Config> read_config(std::string_view json, std::string_view where);

// The same for the config.json of an assistant.
Result<AssistantConfig> read_assistant_config(std::string_view json, std::string_view where);

// The canonical text of a config: only the keys that matter, in a form that reads back to an equal
// one.
std::string canonical_config(const Config& config);
std::string canonical_config(const AssistantConfig& config);

}  // namespace tandem::spec
