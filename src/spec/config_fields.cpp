#include "spec/config_fields.h"

namespace tandem::spec {
namespace {

// Keys that do not change what the model computes at inference.
constexpr std::string_view harmless_keys[] = {"_name_or_path",
                                              "architectures",
                                              "attention_dropout",
                                              "cache_implementation",
                                              "chunk_size_feed_forward",
                                              "dtype",
                                              "id2label",
                                              "initializer_range",
                                              "label2id",
                                              "output_attentions",
                                              "output_hidden_states",
                                              "problem_type",
                                              "return_dict",
                                              "torch_dtype",
                                              "transformers_version",
                                              "use_cache"};

Result<LayerKind> layer_kind(const JsonValue& value) {
  TRY_ASSIGN(const std::string text, value.as<std::string>());
  for (const LayerKind kind : {LayerKind::sliding, LayerKind::full}) {
    if (text == name(kind)) return kind;
  }
  return fail(ErrorCode::unsupported,
              "{}: expected \"sliding_attention\" or \"full_attention\", found {}", value.where(),
              value.found());
}

}  // namespace

Result<uint32_t> checked_size(uint32_t size, const std::string& where, uint32_t smallest,
                              uint32_t largest, uint32_t multiple) {
  if (size < smallest || size > largest) {
    return fail(ErrorCode::bad_value, "{}: expected {} to {}, found {}", where, smallest, largest,
                size);
  }
  if (size % multiple != 0) {
    return fail(ErrorCode::unsupported, "{}: expected a multiple of {}, found {}", where, multiple,
                size);
  }
  return size;
}

Result<uint32_t> read_size(JsonObject& object, std::string_view key, uint32_t smallest,
                           uint32_t largest, uint32_t multiple) {
  TRY_ASSIGN(const uint32_t size, object.get<uint32_t>(key));
  return checked_size(size, object.where(key), smallest, largest, multiple);
}

Result<uint32_t> read_size_or(JsonObject& object, std::string_view key, uint32_t otherwise,
                              uint32_t smallest, uint32_t largest, uint32_t multiple) {
  TRY_ASSIGN(const auto size, object.nullable<uint32_t>(key));
  return checked_size(size.value_or(otherwise), object.where(key), smallest, largest, multiple);
}

Result<uint32_t> checked_kv_heads(uint32_t kv_heads, const std::string& where, uint32_t heads) {
  TRY(checked_size(kv_heads, where, 1, heads, 1));
  if (heads % kv_heads == 0) return kv_heads;
  return fail(ErrorCode::bad_value, "{}: expected a divisor of the {} attention heads, found {}",
              where, heads, kv_heads);
}

Result<double> checked_positive(double value, const std::string& where) {
  if (value >= 1e-12 && value <= 1e12) return value;
  return fail(ErrorCode::bad_value, "{}: expected a number from 1e-12 to 1e12, found {}", where,
              value);
}

Result<double> read_positive(JsonObject& object, std::string_view key) {
  TRY_ASSIGN(const double value, object.get<double>(key));
  return checked_positive(value, object.where(key));
}

Result<double> read_positive_or(JsonObject& object, std::string_view key, double otherwise) {
  TRY_ASSIGN(const auto value, object.nullable<double>(key));
  return checked_positive(value.value_or(otherwise), object.where(key));
}

Result<bool> read_flag(JsonObject& object, std::string_view key) {
  TRY_ASSIGN(const std::optional<bool> flag, object.nullable<bool>(key));
  return flag.value_or(false);
}

Result<void> expect_one_of(JsonObject& object, std::string_view key,
                           std::initializer_list<Json> accepted) {
  TRY_ASSIGN(const std::optional<JsonValue> value, object.nullable<JsonValue>(key));
  if (!value) return {};
  std::string built;
  for (const Json& candidate : accepted) {
    if (value->json().type() == candidate.type() && value->json() == candidate) return {};
    built.append(built.empty() ? "" : " or ").append(candidate.dump());
  }
  return fail(ErrorCode::unsupported, "{}: {} is not built; only {} is", value->where(),
              value->found(), built);
}

Result<void> check_features(JsonObject& text) {
  TRY(expect_one_of(text, "attention_bias", {false}));
  TRY(expect_one_of(text, "hidden_activation", {"gelu_pytorch_tanh"}));
  TRY(expect_one_of(text, "is_encoder_decoder", {false}));
  TRY(expect_one_of(text, "tie_word_embeddings", {true}));
  TRY(expect_one_of(text, "use_bidirectional_attention", {nullptr, false}));
  skip_harmless(text);
  return {};
}

void skip_harmless(JsonObject& object) {
  for (const std::string_view key : harmless_keys) object.skip(key);
}

Result<std::optional<std::vector<LayerKind>>> read_layer_types(JsonObject& text, uint32_t layers) {
  TRY_ASSIGN(const auto types, text.nullable<std::vector<JsonValue>>("layer_types"));
  if (!types) return std::nullopt;
  if (types->size() != layers) {
    return contradiction(text.where("num_hidden_layers"), size_t{layers},
                         "the length of " + text.where("layer_types"), types->size());
  }
  std::vector<LayerKind> kinds;
  for (const JsonValue& type : *types) {
    TRY_ASSIGN(const LayerKind kind, layer_kind(type));
    kinds.push_back(kind);
  }
  return kinds;
}

Result<void> read_numbers(JsonObject& text, Config& config) {
  TRY_ASSIGN(config.rms_norm_epsilon, read_positive_or(text, "rms_norm_eps", 1e-6));
  TRY_ASSIGN(config.softcap, text.nullable<double>("final_logit_softcapping"));
  if (config.softcap) TRY(checked_positive(*config.softcap, text.where("final_logit_softcapping")));
  return {};
}

Result<std::vector<uint32_t>> read_eos(JsonObject& object) {
  TRY_ASSIGN(const JsonValue value, object.get<JsonValue>("eos_token_id"));
  if (value.json().is_array()) return value.as<std::vector<uint32_t>>();
  TRY_ASSIGN(const uint32_t id, value.as<uint32_t>());
  return std::vector<uint32_t>{id};
}

Result<void> check_tokens(const Config& config, const JsonObject& object) {
  const auto check = [&](std::string_view key, uint32_t id) -> Result<void> {
    if (id < config.vocabulary) return {};
    return fail(ErrorCode::bad_value, "{}: expected a token below the vocabulary of {}, found {}",
                object.where(key), config.vocabulary, id);
  };
  TRY(check("bos_token_id", config.bos));
  TRY(check("pad_token_id", config.pad));
  for (const uint32_t id : config.eos) TRY(check("eos_token_id", id));
  if (!config.eos.empty()) return {};
  return fail(ErrorCode::bad_value, "{}: expected at least one token, found none",
              object.where("eos_token_id"));
}

}  // namespace tandem::spec
