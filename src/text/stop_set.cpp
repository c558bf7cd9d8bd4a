// Reads eos_token_id.
#include "text/stop_set.h"

#include <algorithm>

#include "base/json.h"

namespace tandem::text {

Result<std::vector<uint32_t>> stop_ids(std::string_view generation_config_json,
                                       std::string_view where, uint32_t vocabulary) {
  Json document;
  TRY_ASSIGN(JsonObject config,
             open_json_object(generation_config_json, std::string(where), document));
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

}  // namespace tandem::text
