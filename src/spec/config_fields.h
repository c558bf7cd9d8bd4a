// Fields that the configs of all families have, read from their config.json.
#pragma once

#include <initializer_list>

#include "base/json.h"
#include "spec/config.h"

namespace tandem::spec {

// Bounds far beyond any Gemma, so that products of two sizes fit 32 bits where the registry and
// the kernels form them.
inline constexpr uint32_t max_vocabulary = 1u << 24;
inline constexpr uint32_t max_width = 1u << 20;
inline constexpr uint32_t max_heads = 1024;
inline constexpr uint32_t max_head_dim = 4096;
inline constexpr uint32_t max_layers = 1024;
inline constexpr uint32_t max_positions = 1u << 28;

template <class T>
tl::unexpected<Error> contradiction(const std::string& first, const T& first_value,
                                    const std::string& second, const T& second_value) {
  return fail(ErrorCode::bad_value, "{} is {}, but {} is {}: they contradict each other", first,
              first_value, second, second_value);
}

Result<uint32_t> checked_size(uint32_t size, const std::string& where, uint32_t smallest,
                              uint32_t largest, uint32_t multiple);
Result<uint32_t> read_size(JsonObject& object, std::string_view key, uint32_t smallest,
                           uint32_t largest, uint32_t multiple = 1);
// `otherwise` where the key is missing or null.
Result<uint32_t> read_size_or(JsonObject& object, std::string_view key, uint32_t otherwise,
                              uint32_t smallest, uint32_t largest, uint32_t multiple = 1);
// KV heads are shared evenly by the attention heads.
Result<uint32_t> checked_kv_heads(uint32_t kv_heads, const std::string& where, uint32_t heads);

// Refuses what is no positive number far inside of what f32 holds, so that no kernel meets an
// infinity or a zero.
Result<double> checked_positive(double value, const std::string& where);
Result<double> read_positive(JsonObject& object, std::string_view key);
Result<double> read_positive_or(JsonObject& object, std::string_view key, double otherwise);

// False where the key is missing or null.
Result<bool> read_flag(JsonObject& object, std::string_view key);

// Refuses a value other than those listed; a missing key and null count as the first one.
Result<void> expect_one_of(JsonObject& object, std::string_view key,
                           std::initializer_list<Json> accepted);

// Refuses what would change the computation in a way that is built for no family; skips what never
// matters.
Result<void> check_features(JsonObject& text);
void skip_harmless(JsonObject& object);

// What layer_types says of so many layers; nothing where it is missing.
Result<std::optional<std::vector<LayerKind>>> read_layer_types(JsonObject& text, uint32_t layers);

// rms_norm_eps and final_logit_softcapping.
Result<void> read_numbers(JsonObject& text, Config& config);

Result<std::vector<uint32_t>> read_eos(JsonObject& object);
// BOS, padding and stop tokens lie in the vocabulary, and there is a stop token.
Result<void> check_tokens(const Config& config, const JsonObject& object);

// Gemma 3's text config.
Result<Config> read_gemma3_text(JsonObject& text);
Json gemma3_json(const Config& config);

}  // namespace tandem::spec
