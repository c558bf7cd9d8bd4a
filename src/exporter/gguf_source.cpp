// A GGUF file as a source: its tensors under Hugging Face's names, its metadata as the texts of a
// Hugging Face folder.
#include <charconv>

#include "base/error.h"
#include "exporter/gguf.h"
#include "exporter/gguf_texts.h"
#include "exporter/source.h"

namespace tandem::exporter {
namespace {

using Names = std::pair<std::string_view, std::string_view>;  // in GGUF, in Hugging Face

constexpr Names model_names[] = {
    {"token_embd.weight", "embed_tokens.weight"},
    {"per_layer_token_embd.weight", "embed_tokens_per_layer.weight"},
    {"per_layer_model_proj.weight", "per_layer_model_projection.weight"},
    {"per_layer_proj_norm.weight", "per_layer_projection_norm.weight"},
    {"output_norm.weight", "norm.weight"},
    {"rope_freqs.weight", "rotary_emb.inv_freq"},
    {"nextn.pre_projection.weight", "pre_projection.weight"},
    {"nextn.post_projection.weight", "post_projection.weight"},
    {"masked_embd_centroids.weight", "masked_embedding.centroids.weight"},
    {"masked_embd_ordering", "masked_embedding.token_ordering"},
};

constexpr Names layer_names[] = {
    {"attn_norm.weight", "input_layernorm.weight"},
    {"attn_q_norm.weight", "self_attn.q_norm.weight"},
    {"attn_k_norm.weight", "self_attn.k_norm.weight"},
    {"attn_q.weight", "self_attn.q_proj.weight"},
    {"attn_k.weight", "self_attn.k_proj.weight"},
    {"attn_v.weight", "self_attn.v_proj.weight"},
    {"attn_output.weight", "self_attn.o_proj.weight"},
    {"post_attention_norm.weight", "post_attention_layernorm.weight"},
    {"ffn_norm.weight", "pre_feedforward_layernorm.weight"},
    {"ffn_gate.weight", "mlp.gate_proj.weight"},
    {"ffn_up.weight", "mlp.up_proj.weight"},
    {"ffn_down.weight", "mlp.down_proj.weight"},
    {"post_ffw_norm.weight", "post_feedforward_layernorm.weight"},
    {"inp_gate.weight", "per_layer_input_gate.weight"},
    {"proj.weight", "per_layer_projection.weight"},
    {"post_norm.weight", "post_per_layer_input_norm.weight"},
    {"layer_output_scale.weight", "layer_scalar"},
};

std::string_view find(std::span<const Names> names, std::string_view name) {
  for (const auto& [gguf, hugging_face] : names) {
    if (gguf == name) return hugging_face;
  }
  return {};
}

// Empty for a tensor that no Gemma has.
std::string hugging_face_name(std::string_view name) {
  constexpr std::string_view layer_prefix = "blk.";
  if (!name.starts_with(layer_prefix)) return std::string(find(model_names, name));
  name.remove_prefix(layer_prefix.size());
  uint32_t layer = 0;
  std::from_chars(name.data(), name.data() + name.size(), layer);
  const std::string begin = fmt::format("{}.", layer);
  if (!name.starts_with(begin)) return {};
  const std::string_view rest = find(layer_names, name.substr(begin.size()));
  return rest.empty() ? std::string() : fmt::format("layers.{}{}", begin, rest);
}

// What GGML's types are in the artifact. Those that it does not have become f16.
spec::WeightType kept_type(std::string_view type) {
  if (type == "F32") return spec::WeightType::f32;
  if (type == "Q4_0") return spec::WeightType::q4_0;
  return type == "Q8_0" ? spec::WeightType::q8_0 : spec::WeightType::f16;
}

Result<std::map<std::string, CheckpointTensor>> take_tensors(const std::string& path,
                                                             std::vector<GgufTensor>&& gguf) {
  std::map<std::string, CheckpointTensor> tensors;
  std::vector<std::string> unknown;
  for (GgufTensor& tensor : gguf) {
    const std::string name = hugging_face_name(tensor.name);
    if (name.empty()) unknown.push_back(tensor.name);
    tensors[name] = {tensor.name,   tensor.type,  std::move(tensor.shape), 0,
                     tensor.offset, tensor.bytes, kept_type(tensor.type)};
  }
  if (unknown.empty()) return tensors;
  return fail(ErrorCode::malformed_checkpoint, "{}: not part of the model: {}", path,
              first_few(unknown));
}

}  // namespace

Result<Source> open_gguf_source(const std::filesystem::path& path) {
  TRY_ASSIGN(File file, File::open(path, Links::follow));
  TRY_ASSIGN(Gguf gguf, read_gguf(file));
  TRY_ASSIGN(JsonObject metadata, JsonValue(gguf.metadata, file.path()).as<JsonObject>());
  TRY(gguf_architecture(metadata));
  TRY_ASSIGN(auto tensors, take_tensors(file.path(), std::move(gguf.tensors)));
  Source source;
  source.config_name = source.tokenizer_name = source.generation_name = file.path();
  source.checkpoint = std::make_unique<const Checkpoint>(
      Checkpoint::of_gguf(path.filename().string(), std::move(file), std::move(tensors)));
  TRY_ASSIGN(source.texts, read_gguf_texts(metadata, *source.checkpoint));
  return source;
}

}  // namespace tandem::exporter
