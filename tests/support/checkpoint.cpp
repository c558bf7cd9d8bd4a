// Writes synthetic checkpoints, with a safetensors writer of its own so that tests do not lean on
// the code they test.
#include "support/checkpoint.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/half.h"
#include "spec/config.h"
#include "spec/tensors.h"

namespace tandem::test {
namespace {

using nlohmann::json;

// splitmix64
struct Random {
  uint64_t state;
  uint64_t next() {
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
  }
  float uniform() { return static_cast<float>(next() >> 40) * 0x1p-24f; }  // [0, 1)
};

uint64_t name_seed(std::string_view name, uint64_t seed) {
  uint64_t hash = 0xcbf29ce484222325u ^ seed * 0x9e3779b97f4a7c15u;  // FNV-1a
  for (const char c : name) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3u;
  return hash;
}

void append_value(std::vector<std::byte>& bytes, float value, std::string_view dtype) {
  auto append = [&](auto bits) {
    const size_t end = bytes.size();
    bytes.resize(end + sizeof(bits));
    std::memcpy(&bytes[end], &bits, sizeof(bits));
  };
  if (dtype == "F32") append(value);
  if (dtype == "F16") append(to_half(value));
  if (dtype == "BF16") append(static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16));
}

CheckpointTensor random_tensor(const spec::Tensor& tensor, const spec::Source& source,
                               const CheckpointOptions& options) {
  const bool vector = tensor.tensor_class == spec::TensorClass::vector;
  // The assistant's own tensors, beside its inner model, have no prefix.
  const bool outside = source.name.starts_with("pre_projection.") ||
                       source.name.starts_with("post_projection.") ||
                       source.name.starts_with("masked_embedding.");
  CheckpointTensor result{(outside ? "" : options.prefix) + source.name,
                          options.dtype,
                          {source.rows, source.columns},
                          {}};
  if (vector) result.shape = {source.columns};
  Random random{name_seed(source.name, options.seed)};
  const float spread = std::sqrt(3.0f / static_cast<float>(source.columns));
  for (uint64_t i = 0; i < uint64_t{source.rows} * source.columns; ++i) {
    const float x = 2 * random.uniform() - 1;
    append_value(result.bytes, vector ? 1 + 0.3f * x : spread * x, options.dtype);
  }
  return result;
}

CheckpointTensor backwards(const spec::Source& source) {
  CheckpointTensor result{source.name, "I64", {source.columns}, {}};
  result.bytes.resize(source.columns * sizeof(int64_t));
  for (uint32_t i = 0; i < source.columns; ++i) {
    const int64_t id = source.columns - 1 - i;
    std::memcpy(&result.bytes[i * sizeof(id)], &id, sizeof(id));
  }
  return result;
}

std::vector<CheckpointTensor> random_sources(const std::vector<spec::Tensor>& tensors,
                                             const CheckpointOptions& options) {
  std::vector<CheckpointTensor> result;
  for (const spec::Tensor& tensor : tensors) {
    for (const spec::Source& source : tensor.sources) {
      result.push_back(tensor.tensor_class == spec::TensorClass::ids
                           ? backwards(source)
                           : random_tensor(tensor, source, options));
    }
  }
  return result;
}

std::string tiny_tokenizer() {
  json vocabulary;
  json added = json::array();
  uint32_t next = 0;
  for (const char* token : {"<pad>", "<eos>", "<bos>", "<unk>", "<|turn>", "<turn|>"}) {
    added.push_back({{"id", next},
                     {"content", token},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", true}});
    vocabulary[token] = next++;
  }
  for (uint32_t byte = 0; byte < 256; ++byte) vocabulary[fmt::format("<0x{:02X}>", byte)] = next++;
  for (char c = '!'; c <= '~'; ++c) vocabulary[std::string(1, c)] = next++;
  for (const char* token : {"\u2581", "th", "the", "\u2581the"}) vocabulary[token] = next++;
  const json merges = json::array(
      {json::array({"t", "h"}), json::array({"th", "e"}), json::array({"\u2581", "the"})});
  const json bos = {{"SpecialToken", {{"id", "<bos>"}, {"type_id", 0}}}};
  const json a = {{"Sequence", {{"id", "A"}, {"type_id", 0}}}};
  const json b = {{"Sequence", {{"id", "B"}, {"type_id", 0}}}};
  const json special = {{"<bos>", {{"id", "<bos>"}, {"ids", {2}}, {"tokens", {"<bos>"}}}}};
  const json to_space = {
      {"type", "Replace"}, {"pattern", {{"String", "\u2581"}}}, {"content", " "}};
  return json{
      {"version", "1.0"},
      {"truncation", nullptr},
      {"padding", nullptr},
      {"added_tokens", added},
      {"normalizer", {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", "\u2581"}}},
      {"pre_tokenizer", nullptr},
      {"post_processor",
       {{"type", "TemplateProcessing"},
        {"single", {bos, a}},
        {"pair", {bos, a, bos, b}},
        {"special_tokens", special}}},
      {"decoder",
       {{"type", "Sequence"},
        {"decoders", {to_space, {{"type", "ByteFallback"}}, {{"type", "Fuse"}}}}}},
      {"model",
       {{"type", "BPE"},
        {"dropout", nullptr},
        {"unk_token", "<unk>"},
        {"continuing_subword_prefix", nullptr},
        {"end_of_word_suffix", nullptr},
        {"fuse_unk", true},
        {"byte_fallback", true},
        {"ignore_merges", false},
        {"vocab", vocabulary},
        {"merges", merges}}}}
      .dump(1);
}

constexpr std::string_view chat_template =
    "{{ bos_token }}{% for m in messages %}{{ '<|turn>' + ('model' if m['role'] == 'assistant' "
    "else m['role']) + '\n"
    "' + (m['content'] | trim) + '<turn|>\n' }}{% endfor %}{% if add_generation_prompt %}{{ "
    "'<|turn>model\n"
    "' }}{% endif %}";

}  // namespace

std::string tiny_config(const TinyShape& shape) {
  json kinds = json::array();
  for (uint32_t layer = 0; layer < shape.layers; ++layer) {
    const bool full = layer % 3 == 2 || layer + 1 == shape.layers;
    kinds.push_back(full ? "full_attention" : "sliding_attention");
  }
  json config = {
      {"architectures", {"Gemma4ForCausalLM"}},
      {"model_type", "gemma4_text"},
      {"hidden_activation", "gelu_pytorch_tanh"},
      {"hidden_size", 64},
      {"num_hidden_layers", shape.layers},
      {"layer_types", kinds},
      {"num_attention_heads", 4},
      {"num_key_value_heads", shape.kv_heads},
      {"head_dim", 16},
      {"global_head_dim", 32},
      {"sliding_window", shape.window},
      {"intermediate_size", 96},
      {"use_double_wide_mlp", shape.double_wide_mlp},
      {"num_kv_shared_layers", shape.kv_shared},
      {"attention_k_eq_v", shape.k_eq_v},
      {"vocab_size", shape.vocabulary},
      {"hidden_size_per_layer_input", shape.per_layer_input},
      {"max_position_embeddings", shape.max_positions},
      {"final_logit_softcapping", 30.0},
      {"rms_norm_eps", 1e-6},
      {"tie_word_embeddings", true},
      {"rope_parameters",
       {{"full_attention",
         {{"partial_rotary_factor", 0.25}, {"rope_theta", 1e6}, {"rope_type", "proportional"}}},
        {"sliding_attention", {{"rope_theta", 1e4}, {"rope_type", "default"}}}}},
      {"bos_token_id", 2},
      {"pad_token_id", 0},
      {"eos_token_id", {1, 5}},
  };
  if (shape.per_layer_input != 0) config["vocab_size_per_layer_input"] = shape.vocabulary;
  return config.dump(1);
}

std::string tiny_assistant_config(const TinyShape& target, bool ordered) {
  const json text = {
      {"model_type", "gemma4_text"},
      {"hidden_size", 32},
      {"num_hidden_layers", 2},
      {"layer_types", {"sliding_attention", "full_attention"}},
      {"num_attention_heads", 4},
      {"num_key_value_heads", target.kv_heads},
      {"head_dim", 16},
      {"global_head_dim", 32},
      {"sliding_window", target.window},
      {"intermediate_size", 64},
      {"num_kv_shared_layers", 2},
      {"vocab_size", target.vocabulary},
      {"hidden_size_per_layer_input", 0},
      {"max_position_embeddings", target.max_positions},
      {"rope_parameters", json::parse(tiny_config(target)).at("rope_parameters")},
      {"bos_token_id", 2},
      {"pad_token_id", 0},
      {"eos_token_id", {1, 5}},
  };
  return json{{"model_type", "gemma4_assistant"},
              {"text_config", text},
              {"backbone_hidden_size", 64},
              {"use_ordered_embeddings", ordered},
              {"num_centroids", 16},
              {"centroid_intermediate_top_k", 3}}
      .dump(1);
}

std::string tiny_gemma3_config() {
  return json{{"architectures", {"Gemma3ForCausalLM"}},
              {"model_type", "gemma3_text"},
              {"hidden_activation", "gelu_pytorch_tanh"},
              {"hidden_size", 64},
              {"num_hidden_layers", 7},
              {"num_attention_heads", 4},
              {"num_key_value_heads", 2},
              {"head_dim", 16},
              {"query_pre_attn_scalar", 24},
              {"sliding_window", 8},
              {"intermediate_size", 96},
              {"vocab_size", 512},
              {"max_position_embeddings", 256},
              {"rms_norm_eps", 1e-6},
              {"rope_theta", 1e6},
              {"rope_local_base_freq", 1e4},
              {"rope_scaling", {{"rope_type", "linear"}, {"factor", 8}}},
              {"bos_token_id", 2},
              {"pad_token_id", 0},
              {"eos_token_id", {1, 5}}}
      .dump(1);
}

std::vector<CheckpointTensor> random_tensors(std::string_view config_json,
                                             const CheckpointOptions& options) {
  const auto config = spec::read_config(config_json, "config.json");
  if (config) return random_sources(spec::tensors(*config), options);
  ADD_FAILURE() << config.error().message;
  return {};
}

std::vector<CheckpointTensor> random_assistant_tensors(std::string_view config_json,
                                                       const CheckpointOptions& options) {
  const auto config = spec::read_assistant_config(config_json, "config.json");
  if (config) return random_sources(spec::tensors(*config), options);
  ADD_FAILURE() << config.error().message;
  return {};
}

void write_safetensors(const std::filesystem::path& path,
                       const std::vector<CheckpointTensor>& tensors) {
  json header;
  std::string data;
  for (const CheckpointTensor& tensor : tensors) {
    header[tensor.name] = {{"dtype", tensor.dtype},
                           {"shape", tensor.shape},
                           {"data_offsets", {data.size(), data.size() + tensor.bytes.size()}}};
    data.append(reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size());
  }
  const std::string text = header.dump();
  const uint64_t length = text.size();
  write_file(path, std::string(reinterpret_cast<const char*>(&length), 8) + text + data);
}

void write_checkpoint(const std::filesystem::path& folder, std::string_view config_json,
                      const std::vector<CheckpointTensor>& tensors, uint32_t shards) {
  std::filesystem::create_directories(folder);
  write_file(folder / "config.json", config_json);
  write_file(folder / "generation_config.json",
             R"({"bos_token_id": 2, "eos_token_id": [1, 5], "pad_token_id": 0})");
  write_file(folder / "chat_template.jinja", chat_template);
  write_file(folder / "tokenizer.json", tiny_tokenizer());
  if (shards == 1) {
    write_safetensors(folder / "model.safetensors", tensors);
    return;
  }
  std::vector<std::vector<CheckpointTensor>> parts(shards);
  json weight_map;
  uint64_t total = 0;
  auto file = [&](uint64_t part) {
    return fmt::format("model-{:05}-of-{:05}.safetensors", part + 1, shards);
  };
  for (size_t i = 0; i < tensors.size(); ++i) {
    const uint64_t part = i * shards / tensors.size();
    parts[part].push_back(tensors[i]);
    weight_map[tensors[i].name] = file(part);
    total += tensors[i].bytes.size();
  }
  for (uint64_t part = 0; part < shards; ++part)
    write_safetensors(folder / file(part), parts[part]);
  write_file(folder / "model.safetensors.index.json",
             json{{"metadata", {{"total_size", total}}}, {"weight_map", weight_map}}.dump(1));
}

void write_checkpoint(const std::filesystem::path& folder, std::string_view config_json,
                      const CheckpointOptions& options) {
  write_checkpoint(folder, config_json, random_tensors(config_json, options), options.shards);
}

void write_zero_checkpoint(const std::filesystem::path& folder, std::string_view config_json) {
  const auto config = spec::read_config(config_json, "config.json");
  ASSERT_TRUE(config) << config.error().message;
  write_checkpoint(folder, config_json, std::vector<CheckpointTensor>());
  json header;
  uint64_t end = 0;
  for (const spec::Tensor& tensor : spec::tensors(*config)) {
    for (const spec::Source& source : tensor.sources) {
      json shape = {source.rows, source.columns};
      if (tensor.tensor_class == spec::TensorClass::vector) shape = {source.columns};
      const uint64_t begin = std::exchange(end, end + uint64_t{2} * source.rows * source.columns);
      header["model." + source.name] = {
          {"dtype", "BF16"}, {"shape", shape}, {"data_offsets", {begin, end}}};
    }
  }
  const std::string text = header.dump();
  const uint64_t length = text.size();
  const std::filesystem::path path = folder / "model.safetensors";
  write_file(path, std::string(reinterpret_cast<const char*>(&length), 8) + text);
  std::filesystem::resize_file(path, 8 + length + end);
}

TemporaryFolder::TemporaryFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "tandem-test-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) ADD_FAILURE() << "cannot make " << pattern;
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

void write_file(const std::filesystem::path& path, std::string_view bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!file.flush()) ADD_FAILURE() << "cannot write " << path;
}

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) ADD_FAILURE() << "cannot read " << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace tandem::test
