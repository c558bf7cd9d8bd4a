// Changes of a JSON document, one place at a time.
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "base/json.h"

namespace tandem::test {

// All places in a value: its objects, arrays and leaves.
inline void collect(const Json& value, const Json::json_pointer& place,
                    std::vector<Json::json_pointer>& places) {
  places.push_back(place);
  if (value.is_object()) {
    for (const auto& [key, child] : value.items()) collect(child, place / key, places);
  } else if (value.is_array()) {
    for (size_t i = 0; i < value.size(); ++i) collect(value[i], place / i, places);
  }
}

// Other values for a leaf, each of the same type.
inline std::vector<Json> other_values(const Json& value) {
  if (value.is_boolean()) return {!value.get<bool>()};
  if (value.is_number_unsigned()) {
    const uint64_t number = value.get<uint64_t>();
    return {number + 1, number == 0 ? number + 16 : number - 1};
  }
  if (value.is_number()) return {value.get<double>() * 2};
  if (value.is_string()) {
    std::string text = value.get<std::string>();
    std::vector<Json> result = {text + "0", text.substr(0, text.size() - 1)};
    if (text.size() == 64) {
      text[17] = text[17] == '0' ? '1' : '0';
      result.push_back(text);
    }
    return result;
  }
  return {};
}

// Documents that differ from `json` in one place.
inline void for_each_change(const Json& json,
                            const std::function<void(const Json&, const std::string&)>& use) {
  std::vector<Json::json_pointer> places;
  collect(json, Json::json_pointer(), places);
  const auto change = [&](const Json::json_pointer& place, const std::string& what,
                          const Json& value) {
    Json changed = json;
    changed[place] = value;
    use(changed, place.to_string() + " " + what);
  };
  for (const Json::json_pointer& place : places) {
    const Json& value = json[place];
    for (const Json& other : other_values(value)) change(place, "= " + other.dump(), other);
    for (const Json& other : {Json(nullptr), Json("x"), Json(-1), Json(0.5), Json(Json::array()),
                              Json(Json::object())}) {
      if (other != value) change(place, "= " + other.dump(), other);
    }
    if (value.is_object()) change(place / "zzz", "added", 1);
    if (value.is_array() && !value.empty()) {
      Json repeated = value;
      repeated.push_back(value.back());
      change(place, "with its last element twice", repeated);
      Json shorter = value;
      shorter.erase(shorter.size() - 1);
      change(place, "without its last element", shorter);
      Json reversed = value;
      std::reverse(reversed.begin(), reversed.end());
      if (reversed != value) change(place, "reversed", reversed);
    }
    if (place.empty()) continue;
    const Json& parent = json[place.parent_pointer()];
    if (!parent.is_object()) continue;
    Json changed = json;
    changed[place.parent_pointer()].erase(place.back());
    use(changed, place.to_string() + " removed");
  }
}

}  // namespace tandem::test
