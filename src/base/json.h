// Strict JSON: no duplicate keys, typed reads that name file and path when they fail, refusal of
// keys that nobody read, and one canonical byte form.
#pragma once

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/error.h"

namespace tandem {

using Json = nlohmann::json;

// Parses UTF-8 text. `file` names it in messages. Refuses duplicate keys, text behind the value,
// and nesting deeper than 64.
Result<Json> parse_json(std::string_view text, std::string_view file);

// The canonical form: keys sorted by their bytes, two spaces of indentation, shortest numbers, no
// escapes but the necessary ones, one newline at the end.
std::string canonical_json(const Json& value);

// Parses a text that must be its own canonical form.
Result<Json> parse_canonical_json(std::string_view text, std::string_view file);

class JsonObject;

// A value with the place where it stands. The Json it was made from must outlive it.
class JsonValue {
 public:
  JsonValue(const Json& value, std::string file, std::string path = {})
      : value_(&value), file_(std::move(file)), path_(std::move(path)) {}

  // T is uint32_t or uint64_t (true, "1" and 1.0 are not integers), double (finite; integers are
  // numbers too), bool, std::string, JsonObject, JsonValue (any value), or a std::vector of these.
  template <class T>
  Result<T> as() const;

  bool is_null() const { return value_->is_null(); }
  const Json& json() const { return *value_; }
  // "config.json: layers[3].head_dim": the beginning of every message about this value.
  std::string where() const;
  // The value in a few characters, for messages.
  std::string found() const;

 private:
  Result<uint64_t> unsigned_integer(uint64_t largest) const;
  Result<double> number() const;
  Result<bool> boolean() const;
  Result<std::string> string() const;
  Result<std::vector<JsonValue>> elements() const;
  tl::unexpected<Error> wrong_type(std::string_view expected) const;

  friend class JsonObject;
  const Json* value_;
  std::string file_;
  std::string path_;
};

// An object that is read key by key; `finish` then refuses what was not read.
class JsonObject {
 public:
  explicit JsonObject(const JsonValue& object) : object_(object) {}  // an object: JsonValue::as

  // The value of a key that must be there.
  template <class T>
  Result<T> get(std::string_view key) {
    TRY_ASSIGN(const JsonValue value, required(key));
    return value.as<T>();
  }
  // The value of a key that may be missing.
  template <class T>
  Result<std::optional<T>> find(std::string_view key) {
    const std::optional<JsonValue> value = lookup(key);
    if (!value) return std::nullopt;
    TRY_ASSIGN(T result, value->as<T>());
    return result;
  }
  // The value of a key that may be missing or null, which is the same.
  template <class T>
  Result<std::optional<T>> nullable(std::string_view key) {
    const std::optional<JsonValue> value = lookup(key);
    if (!value || value->is_null()) return std::nullopt;
    TRY_ASSIGN(T result, value->as<T>());
    return result;
  }

  // Counts a key as read, if it is there.
  void skip(std::string_view key) { lookup(key); }
  bool has(std::string_view key) const;
  std::vector<std::string> keys() const;    // all of them, sorted
  std::vector<std::string> unread() const;  // those that were never asked for, sorted
  // "config.json: text_config" for this object; "config.json: text_config.key" for a key of it.
  std::string where() const { return object_.where(); }
  std::string where(std::string_view key) const;

  // Refuses the first key that was never asked for.
  Result<void> finish() const;

 private:
  std::optional<JsonValue> lookup(std::string_view key);
  Result<JsonValue> required(std::string_view key);

  JsonValue object_;
  std::set<std::string, std::less<>> read_;
};

namespace detail {
template <class T>
struct is_vector : std::false_type {};
template <class T>
struct is_vector<std::vector<T>> : std::true_type {};
}  // namespace detail

template <class T>
Result<T> JsonValue::as() const {
  if constexpr (std::is_same_v<T, uint32_t> || std::is_same_v<T, uint64_t>) {
    TRY_ASSIGN(const uint64_t value, unsigned_integer(std::numeric_limits<T>::max()));
    return static_cast<T>(value);
  } else if constexpr (std::is_same_v<T, double>) {
    return number();
  } else if constexpr (std::is_same_v<T, bool>) {
    return boolean();
  } else if constexpr (std::is_same_v<T, std::string>) {
    return string();
  } else if constexpr (std::is_same_v<T, JsonValue>) {
    return *this;
  } else if constexpr (std::is_same_v<T, JsonObject>) {
    if (!value_->is_object()) return wrong_type("an object");
    return JsonObject(*this);
  } else {
    static_assert(detail::is_vector<T>::value, "not a type of JSON values");
    TRY_ASSIGN(const std::vector<JsonValue> values, elements());
    T result;
    result.reserve(values.size());
    for (const JsonValue& value : values) {
      TRY_ASSIGN(auto element, value.template as<typename T::value_type>());
      result.push_back(std::move(element));
    }
    return result;
  }
}

// Parses `text` and opens the object that it must be; `json` keeps what the object refers to.
Result<JsonObject> open_json_object(std::string_view text, std::string_view file, Json& json);

}  // namespace tandem
