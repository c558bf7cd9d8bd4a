#include "support/gguf.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>

#include "base/half.h"
#include "spec/config.h"

namespace tandem::test {
namespace {

using nlohmann::json;

template <class T>
std::string raw(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}
std::string raw_text(std::string_view text) { return raw(uint64_t{text.size()}).append(text); }

struct Format {
  std::string_view name;
  uint32_t id;
  uint32_t values;
  uint32_t bytes;
};
constexpr Format formats[] = {{"F32", 0, 1, 4},      {"F16", 1, 1, 2},       {"BF16", 30, 1, 2},
                              {"I32", 26, 1, 4},     {"I64", 27, 1, 8},      {"Q4_0", 2, 32, 18},
                              {"Q4_1", 3, 32, 20},   {"Q5_0", 6, 32, 22},    {"Q5_1", 7, 32, 24},
                              {"Q8_0", 8, 32, 34},   {"Q4_K", 12, 256, 144}, {"Q5_K", 13, 256, 176},
                              {"Q6_K", 14, 256, 210}};

const Format& format_of(std::string_view name) {
  const auto found = std::find_if(std::begin(formats), std::end(formats),
                                  [&](const Format& format) { return format.name == name; });
  if (found == std::end(formats)) ADD_FAILURE() << "no format " << name;
  return *found;
}

struct Bits {
  std::string_view bytes;
  uint32_t byte(size_t at) const { return static_cast<uint8_t>(bytes[at]); }
  double half(size_t at) const {
    return from_half(static_cast<uint16_t>(byte(at) | byte(at + 1) << 8));
  }
  int signed_byte(size_t at) const { return static_cast<int8_t>(bytes[at]); }
};

// The 6-bit scale and minimum of sub-block j of a K block, whose 12 bytes of them begin at byte 4.
std::pair<uint32_t, uint32_t> scale_and_minimum(const Bits& block, uint32_t j) {
  const auto q = [&](uint32_t i) { return block.byte(4 + i); };
  if (j < 4) return {q(j) & 63, q(j + 4) & 63};
  return {(q(j + 4) & 0xF) | (q(j - 4) >> 6) << 4, (q(j + 4) >> 4) | (q(j) >> 6) << 4};
}

void append_block(std::string_view type, const Bits& b, std::vector<double>& values) {
  const size_t begin = values.size();
  values.resize(begin + format_of(type).values);
  double* y = &values[begin];
  if (type == "Q4_0" || type == "Q4_1" || type == "Q5_0" || type == "Q5_1") {
    const bool minimum = type.back() == '1', five = type[1] == '5';
    const size_t high = minimum ? 4 : 2, quants = high + (five ? 4 : 0);
    for (uint32_t j = 0; j < 16; ++j) {
      uint32_t low_bit = 0, high_bit = 0;
      if (five) {
        low_bit = b.byte(high + j / 8) >> (j % 8) & 1;
        high_bit = b.byte(high + 2 + j / 8) >> (j % 8) & 1;
      }
      const double offset = minimum ? 0 : five ? 16 : 8;
      y[j] = b.half(0) * ((b.byte(quants + j) & 15) + 16 * low_bit - offset);
      y[j + 16] = b.half(0) * ((b.byte(quants + j) >> 4) + 16 * high_bit - offset);
    }
    for (uint32_t j = 0; minimum && j < 32; ++j) y[j] += b.half(2);
  } else if (type == "Q8_0") {
    for (uint32_t j = 0; j < 32; ++j) y[j] = b.half(0) * b.signed_byte(2 + j);
  } else if (type == "Q4_K" || type == "Q5_K") {
    const bool five = type == "Q5_K";
    for (uint32_t pair = 0; pair < 4; ++pair) {
      const auto [s0, m0] = scale_and_minimum(b, 2 * pair);
      const auto [s1, m1] = scale_and_minimum(b, 2 * pair + 1);
      for (uint32_t l = 0; l < 32; ++l) {
        const uint32_t q = b.byte((five ? 48 : 16) + 32 * pair + l);
        const uint32_t h = five ? b.byte(16 + l) >> (2 * pair) : 0;
        y[64 * pair + l] = b.half(0) * s0 * ((q & 15) + 16 * (h & 1)) - b.half(2) * m0;
        y[64 * pair + 32 + l] = b.half(0) * s1 * ((q >> 4) + 16 * (h >> 1 & 1)) - b.half(2) * m1;
      }
    }
  } else if (type == "Q6_K") {
    for (uint32_t n = 0; n < 2; ++n) {
      for (uint32_t l = 0; l < 32; ++l) {
        const uint32_t a = b.byte(64 * n + l), c = b.byte(64 * n + l + 32);
        const uint32_t h = b.byte(128 + 32 * n + l);
        const int q[] = {static_cast<int>((a & 15) | (h & 3) << 4) - 32,
                         static_cast<int>((c & 15) | (h >> 2 & 3) << 4) - 32,
                         static_cast<int>((a >> 4) | (h >> 4 & 3) << 4) - 32,
                         static_cast<int>((c >> 4) | (h >> 6 & 3) << 4) - 32};
        for (uint32_t k = 0; k < 4; ++k) {
          y[128 * n + 32 * k + l] =
              b.half(208) * b.signed_byte(192 + 8 * n + 2 * k + l / 16) * q[k];
        }
      }
    }
  }
}

// GGUF's name of a tensor of a Hugging Face checkpoint.
std::string gguf_name(std::string_view name) {
  static const std::map<std::string_view, std::string_view> whole = {
      {"embed_tokens.weight", "token_embd.weight"},
      {"embed_tokens_per_layer.weight", "per_layer_token_embd.weight"},
      {"per_layer_model_projection.weight", "per_layer_model_proj.weight"},
      {"per_layer_projection_norm.weight", "per_layer_proj_norm.weight"},
      {"norm.weight", "output_norm.weight"},
      {"pre_projection.weight", "nextn.pre_projection.weight"},
      {"post_projection.weight", "nextn.post_projection.weight"},
      {"masked_embedding.centroids.weight", "masked_embd_centroids.weight"},
      {"masked_embedding.token_ordering", "masked_embd_ordering"}};
  static const std::map<std::string_view, std::string_view> in_layer = {
      {"input_layernorm", "attn_norm"},
      {"self_attn.q_norm", "attn_q_norm"},
      {"self_attn.k_norm", "attn_k_norm"},
      {"self_attn.q_proj", "attn_q"},
      {"self_attn.k_proj", "attn_k"},
      {"self_attn.v_proj", "attn_v"},
      {"self_attn.o_proj", "attn_output"},
      {"post_attention_layernorm", "post_attention_norm"},
      {"pre_feedforward_layernorm", "ffn_norm"},
      {"post_feedforward_layernorm", "post_ffw_norm"},
      {"mlp.gate_proj", "ffn_gate"},
      {"mlp.up_proj", "ffn_up"},
      {"mlp.down_proj", "ffn_down"},
      {"per_layer_input_gate", "inp_gate"},
      {"per_layer_projection", "proj"},
      {"post_per_layer_input_norm", "post_norm"},
      {"layer_scalar", "layer_output_scale"}};
  if (name.starts_with("model.")) name.remove_prefix(6);
  if (const auto found = whole.find(name); found != whole.end()) return std::string(found->second);
  const size_t dot = name.find('.', 7);
  std::string_view rest = name.substr(dot + 1);
  if (rest.ends_with(".weight")) rest.remove_suffix(7);
  return fmt::format("blk.{}.{}.weight", name.substr(7, dot - 7), in_layer.at(rest));
}

std::vector<std::string> each_layer(const spec::Config& config,
                                    const std::function<std::string(const spec::Layer&)>& value) {
  std::vector<std::string> values;
  for (const spec::Layer& layer : config.layers) values.push_back(value(layer));
  return values;
}

void add_geometry(GgufContent& gguf, const std::string& architecture, const spec::Config& config,
                  uint32_t owning) {
  const auto add = [&](std::string_view name, std::string value) {
    gguf.metadata.emplace_back(fmt::format("{}.{}", architecture, name), std::move(value));
  };
  const uint32_t layers = static_cast<uint32_t>(config.layers.size());
  spec::Layer sliding = config.layers.front(), full = config.layers.back();
  for (const spec::Layer& layer : config.layers) {
    (layer.kind == spec::LayerKind::full ? full : sliding) = layer;
  }
  add("block_count", gguf_u32(layers));
  add("context_length", gguf_u32(config.max_positions));
  add("embedding_length", gguf_u32(config.hidden));
  add("attention.head_count", gguf_u32(config.heads));
  add("attention.layer_norm_rms_epsilon", gguf_f32(static_cast<float>(config.rms_norm_epsilon)));
  add("attention.sliding_window", gguf_u32(config.window));
  add("attention.key_length", gguf_u32(full.head_dim));
  add("attention.value_length", gguf_u32(full.head_dim));
  add("rope.freq_base", gguf_f32(static_cast<float>(full.rope.theta)));
  if (config.family == spec::Family::gemma3) {
    add("feed_forward_length", gguf_u32(full.intermediate));
    add("attention.head_count_kv", gguf_u32(full.kv_heads));
    add("rope.scaling.type", gguf_text("linear"));
    add("rope.scaling.factor", gguf_f32(static_cast<float>(full.rope.factor)));
    return;
  }
  add("embedding_length_per_layer_input", gguf_u32(config.per_layer_input));
  add("feed_forward_length", gguf_array(each_layer(config, [](const spec::Layer& layer) {
        return gguf_i32(static_cast<int32_t>(layer.intermediate));
      })));
  add("attention.head_count_kv", gguf_array(each_layer(config, [](const spec::Layer& layer) {
        return gguf_i32(static_cast<int32_t>(layer.kv_heads));
      })));
  add("attention.sliding_window_pattern", gguf_array(each_layer(config, [](const auto& layer) {
        return gguf_bool(layer.kind == spec::LayerKind::sliding);
      })));
  add("attention.shared_kv_layers", gguf_u32(layers - owning));
  add("attention.key_length_swa", gguf_u32(sliding.head_dim));
  add("attention.value_length_swa", gguf_u32(sliding.head_dim));
  add("rope.dimension_count", gguf_u32(full.head_dim));
  add("rope.dimension_count_swa", gguf_u32(sliding.head_dim));
  add("rope.freq_base_swa", gguf_f32(static_cast<float>(sliding.rope.theta)));
  if (config.softcap) add("final_logit_softcapping", gguf_f32(static_cast<float>(*config.softcap)));
  std::string factors;
  for (uint32_t pair = 0; pair < full.head_dim / 2; ++pair) {
    factors += raw(pair < full.rope.rotated_pairs ? 1.0f : 1e30f);
  }
  gguf.tensors.push_back({"rope_freqs.weight", 0, {full.head_dim / 2}, factors});
}

void add_tokenizer(GgufContent& gguf, std::string_view tokenizer_json) {
  const json tokenizer = json::parse(tokenizer_json);
  const json& vocabulary = tokenizer["model"]["vocab"];
  std::vector<std::string> tokens(vocabulary.size());
  std::vector<std::string> types(vocabulary.size(), gguf_i32(1));
  for (const auto& [token, id] : vocabulary.items()) {
    tokens[id] = token;
    if (token.size() == 6 && token.starts_with("<0x")) types[id] = gguf_i32(6);
  }
  for (const json& added : tokenizer["added_tokens"]) {
    types[added["id"]] = gguf_i32(added["special"] ? 3 : 4);
  }
  std::vector<std::string> merges;
  for (const json& merge : tokenizer["model"]["merges"]) {
    merges.push_back(merge[0].get<std::string>() + " " + merge[1].get<std::string>());
  }
  const auto add = [&](std::string_view name, std::string value) {
    gguf.metadata.emplace_back(fmt::format("tokenizer.ggml.{}", name), std::move(value));
  };
  add("model", gguf_text("gemma4"));
  add("tokens", gguf_texts(tokens));
  add("token_type", gguf_array(types));
  add("merges", gguf_texts(merges));
  add("bos_token_id", gguf_u32(2));
  add("eos_token_id", gguf_u32(1));
  add("padding_token_id", gguf_u32(0));
  add("add_bos_token", gguf_bool(true));
  add("add_space_prefix", gguf_bool(false));
}

}  // namespace

std::string gguf_u32(uint32_t value) { return raw(uint32_t{4}) + raw(value); }
std::string gguf_i32(int32_t value) { return raw(uint32_t{5}) + raw(value); }
std::string gguf_u64(uint64_t value) { return raw(uint32_t{10}) + raw(value); }
std::string gguf_f32(float value) { return raw(uint32_t{6}) + raw(value); }
std::string gguf_bool(bool value) { return raw(uint32_t{7}) + raw(uint8_t{value}); }
std::string gguf_text(std::string_view value) { return raw(uint32_t{8}) + raw_text(value); }

std::string gguf_texts(const std::vector<std::string>& values) {
  std::string result = raw(uint32_t{9}) + raw(uint32_t{8}) + raw(uint64_t{values.size()});
  for (const std::string& value : values) result += raw_text(value);
  return result;
}

std::string gguf_array(const std::vector<std::string>& values) {
  std::string result = raw(uint32_t{9}) + values.at(0).substr(0, 4) + raw(uint64_t{values.size()});
  for (const std::string& value : values) result += value.substr(4);
  return result;
}

std::string& GgufContent::value(std::string_view key) {
  for (auto& [name, value] : metadata) {
    if (name == key) return value;
  }
  return metadata.emplace_back(std::string(key), std::string()).second;
}

void GgufContent::remove(std::string_view key) {
  const size_t before = metadata.size();
  std::erase_if(metadata, [&](const auto& entry) { return entry.first == key; });
  if (metadata.size() == before) ADD_FAILURE() << "no key " << key;
}

GgufTensorData& GgufContent::tensor(std::string_view name) {
  const auto found = std::find_if(tensors.begin(), tensors.end(),
                                  [&](const auto& tensor) { return tensor.name == name; });
  if (found == tensors.end()) ADD_FAILURE() << "no tensor " << name;
  return *found;
}

std::string write_gguf(const GgufContent& content) {
  std::string bytes = "GGUF" + raw(uint32_t{3}) + raw(uint64_t{content.tensors.size()}) +
                      raw(uint64_t{content.metadata.size()});
  for (const auto& [key, value] : content.metadata) bytes += raw_text(key) + value;
  std::string data;
  const auto pad = [&](std::string& text) {
    while (text.size() % content.alignment != 0) text += '\0';
  };
  for (const GgufTensorData& tensor : content.tensors) {
    bytes += raw_text(tensor.name) + raw(static_cast<uint32_t>(tensor.shape.size()));
    for (size_t i = tensor.shape.size(); i > 0; --i) bytes += raw(tensor.shape[i - 1]);
    bytes += raw(tensor.type) + raw(uint64_t{data.size()});
    data += tensor.bytes;
    pad(data);
  }
  pad(bytes);
  return bytes + data;
}

std::vector<double> block_values(std::string_view type, std::string_view bytes) {
  const Format& format = format_of(type);
  std::vector<double> values;
  for (size_t at = 0; at < bytes.size(); at += format.bytes) {
    append_block(type, {bytes.substr(at, format.bytes)}, values);
  }
  return values;
}

std::string random_blocks(std::string_view type, uint64_t values, uint64_t seed) {
  const Format& format = format_of(type);
  std::string bytes(values / format.values * format.bytes, '\0');
  uint64_t state = seed;
  for (char& byte : bytes) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    byte = static_cast<char>(state >> 56);
  }
  // A scale between 2^-9 and 2^-7, of either sign where the artifact's may have one.
  const auto set_scale = [&](size_t at, bool positive) {
    const uint32_t high = static_cast<uint8_t>(bytes[at + 1]);
    bytes[at + 1] = static_cast<char>((high & (positive ? 0x07 : 0x87)) | 0x18);
  };
  for (size_t at = 0; at < bytes.size(); at += format.bytes) {
    set_scale(type == "Q6_K" ? at + 208 : at, type == "Q8_0");
    if (type == "Q4_1" || type == "Q5_1" || type == "Q4_K" || type == "Q5_K")
      set_scale(at + 2, false);
    if (type == "Q4_0") bytes[at + 2] = static_cast<char>(bytes[at + 2] & 0xF0);
    for (size_t i = 2; type == "Q8_0" && i < 34; ++i) {
      if (bytes[at + i] == static_cast<char>(-128)) bytes[at + i] = 127;
    }
    if (type == "Q8_0") bytes[at + 2] = 127;
  }
  return bytes;
}

uint32_t block_columns(std::string_view type) { return format_of(type).values; }

GgufContent gguf_checkpoint(std::string_view config_json, std::string_view tokenizer_json,
                            std::string_view chat_template,
                            const std::vector<CheckpointTensor>& tensors) {
  GgufContent gguf;
  const json given = json::parse(config_json);
  if (given.value("model_type", "") == "gemma4_assistant") {
    const auto config = spec::read_assistant_config(config_json, "config.json").value();
    const std::string architecture = "gemma4-assistant";
    gguf.metadata = {{"general.architecture", gguf_text(architecture)}};
    add_geometry(gguf, architecture, config.text, 0);
    gguf.value(architecture + ".embedding_length_out") = gguf_u32(config.backbone_hidden);
    gguf.value(architecture + ".nextn_predict_layers") =
        gguf_u32(static_cast<uint32_t>(config.text.layers.size()));
    if (config.ordered) {
      gguf.value(architecture + ".n_centroids") = gguf_u32(config.ordered->centroids);
      gguf.value(architecture + ".centroid_top_k") = gguf_u32(config.ordered->top_k);
    }
  } else {
    const auto config = spec::read_config(config_json, "config.json").value();
    const std::string architecture(name(config.family));
    gguf.metadata = {{"general.architecture", gguf_text(architecture)}};
    add_geometry(gguf, architecture, config, config.owning_layers());
  }
  add_tokenizer(gguf, tokenizer_json);
  gguf.metadata.emplace_back("tokenizer.chat_template", gguf_text(chat_template));
  for (const CheckpointTensor& tensor : tensors) {
    gguf.tensors.push_back(
        {gguf_name(tensor.name), format_of(tensor.dtype).id, tensor.shape,
         std::string(reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size())});
  }
  return gguf;
}

std::vector<CheckpointTensor> in_blocks(std::vector<CheckpointTensor> tensors,
                                        std::string_view type) {
  for (CheckpointTensor& tensor : tensors) {
    if (tensor.shape.size() != 2 || tensor.shape[1] % block_columns(type) != 0) continue;
    const uint64_t seed = std::hash<std::string>()(tensor.name);
    const std::string blocks = random_blocks(type, tensor.shape[0] * tensor.shape[1], seed);
    tensor.dtype = type;
    tensor.bytes.resize(blocks.size());
    std::memcpy(tensor.bytes.data(), blocks.data(), blocks.size());
  }
  return tensors;
}

std::vector<CheckpointTensor> in_floats(std::vector<CheckpointTensor> tensors) {
  for (CheckpointTensor& tensor : tensors) {
    if (block_columns(tensor.dtype) == 1) continue;
    const std::string_view blocks(reinterpret_cast<const char*>(tensor.bytes.data()),
                                  tensor.bytes.size());
    std::vector<float> values;
    for (const double value : block_values(tensor.dtype, blocks)) {
      values.push_back(static_cast<float>(value));
    }
    tensor.dtype = "F32";
    tensor.bytes.resize(values.size() * sizeof(float));
    std::memcpy(tensor.bytes.data(), values.data(), tensor.bytes.size());
  }
  return tensors;
}

}  // namespace tandem::test
