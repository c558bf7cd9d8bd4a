#include "text/generation_config.h"

#include <algorithm>

#include "base/json.h"
#include "base/sampling.h"

namespace tandem::text {
namespace {

Result<std::vector<uint32_t>> read_stop_ids(JsonObject& config, uint32_t vocabulary) {
  TRY_ASSIGN(const JsonValue value, config.get<JsonValue>("eos_token_id"));
  std::vector<uint32_t> ids;
  if (value.json().is_array()) {
    TRY_ASSIGN(ids, value.as<std::vector<uint32_t>>());
  } else {
    TRY_ASSIGN(const uint32_t id, value.as<uint32_t>());
    ids.push_back(id);
  }
  if (ids.empty()) {
    return fail(ErrorCode::bad_value, "{}: expected a token id, found none", value.where());
  }
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  if (ids.back() >= vocabulary) {
    return fail(ErrorCode::bad_value, "{}: expected ids below {}, found {}", value.where(),
                vocabulary, ids.back());
  }
  return ids;
}

Result<float> read_number(JsonObject& config, std::string_view key, float otherwise) {
  TRY_ASSIGN(const std::optional<double> value, config.nullable<double>(key));
  return value ? static_cast<float>(*value) : otherwise;
}

Result<SampleOptions> read_sampling(JsonObject& config) {
  SampleOptions sampling;
  TRY_ASSIGN(const std::optional<bool> do_sample, config.nullable<bool>("do_sample"));
  const bool sampled = do_sample.value_or(false);
  TRY_ASSIGN(sampling.temperature, read_number(config, "temperature", 1));
  if (!sampled) sampling.temperature = 0;
  TRY_ASSIGN(const std::optional<uint32_t> top_k, config.nullable<uint32_t>("top_k"));
  sampling.top_k = top_k.value_or(sampled ? 50 : 0);
  TRY_ASSIGN(sampling.top_p, read_number(config, "top_p", 1));
  TRY_ASSIGN(sampling.min_p, read_number(config, "min_p", 0));
  TRY_ASSIGN(sampling.repetition_penalty, read_number(config, "repetition_penalty", 1));
  return sampling;
}

}  // namespace

Result<void> check_stop_ids(std::span<const uint32_t> ids, std::string_view where) {
  if (ids.size() <= max_stop_ids) return {};
  return fail(ErrorCode::unsupported, "{}: eos_token_id: expected at most {} ids, found {}", where,
              max_stop_ids, ids.size());
}

Result<GenerationConfig> read_generation_config(std::string_view json, std::string_view where,
                                                uint32_t vocabulary) {
  Json document;
  TRY_ASSIGN(JsonObject config, open_json_object(json, std::string(where), document));
  GenerationConfig read;
  TRY_ASSIGN(read.stop_ids, read_stop_ids(config, vocabulary));
  TRY(check_stop_ids(read.stop_ids, where));
  TRY_ASSIGN(read.sampling, read_sampling(config));
  read.ignored = config.unread();
  if (const Result<void> valid = check_sampling(read.sampling); !valid)
    return fail(ErrorCode::bad_value, "{}: {}", where, valid.error().message);
  return read;
}

}  // namespace tandem::text
