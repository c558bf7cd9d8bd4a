// The geometry of a Gemma 4 text model, read from a checkpoint's config.json. Every size in the
// engine comes from here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/error.h"

namespace tandem::spec {

enum class LayerKind { sliding, full };

std::string_view name(LayerKind kind);  // "sliding_attention", "full_attention"

// inv_freq(i) = theta^(-2i/head_dim) for pairs i < rotated_pairs, and no rotation for the others.
// Pair i is elements (i, i + head_dim/2).
struct Rope {
  double theta = 0;
  uint32_t rotated_pairs = 0;
  bool operator==(const Rope&) const = default;
};

struct Layer {
  LayerKind kind = LayerKind::sliding;
  uint32_t head_dim = 0;
  uint32_t kv_heads = 0;
  uint32_t intermediate = 0;  // MLP width, already doubled where the config doubles it
  bool key_is_value = false;  // V is the raw k projection (before k norm and RoPE), then v norm
  uint32_t kv_layer = 0;      // the layer whose K/V it reads: its own index, or its donor's
  Rope rope;
  bool operator==(const Layer&) const = default;
};

struct Config {
  uint32_t vocabulary = 0;
  uint32_t hidden = 0;
  uint32_t heads = 0;
  uint32_t window = 0;           // sliding layers see positions p - window + 1 .. p
  uint32_t per_layer_input = 0;  // width of a layer's per-layer input; 0: the model has none
  uint32_t max_positions = 0;
  double rms_norm_epsilon = 0;
  std::optional<double> softcap;  // logits = softcap * tanh(x / softcap)
  std::vector<Layer> layers;
  uint32_t bos = 0;
  uint32_t pad = 0;
  std::vector<uint32_t> eos;
  bool operator==(const Config&) const = default;

  bool shares_kv(uint32_t layer) const { return layers[layer].kv_layer != layer; }
  // The number of leading layers that own K/V; all after them share.
  uint32_t owning_layers() const;
};

// Reads the text of a Hugging Face config.json (a text config, or a multimodal one with a
// `text_config`). `where` names the file in messages. Fields that would change the computation in a
// way that is not built, and fields that contradict each other, are refused; fields known not to
// matter are skipped; any other is refused.
Result<Config> read_config(std::string_view json, std::string_view where);

// The canonical text of a config: only the keys that matter, in a form that read_config reads back
// to an equal Config.
std::string canonical_config(const Config& config);

}  // namespace tandem::spec
