// Parsing through nlohmann::json's events, and the reader's checks.
#include "base/json.h"

#include <algorithm>
#include <cmath>

namespace tandem {
namespace {

constexpr size_t max_depth = 64;

// Builds a value from the parser's events, which report every key, so that a duplicate is seen.
class Builder : public nlohmann::json_sax<Json> {
 public:
  explicit Builder(std::string_view file) : file_(file) {}

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(Json::object()); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& value) override {
    if (open_.back()->contains(value)) return refuse("duplicate key " + Json(value).dump());
    key_ = std::move(value);
    return true;
  }

  bool parse_error(std::size_t, const std::string&,
                   const nlohmann::detail::exception& exception) override {
    // The library's own prefix, "[json.exception...] ", says nothing to a user.
    const std::string_view what = exception.what();
    const size_t prefix = what.find("] ");
    return refuse(std::string(prefix == what.npos ? what : what.substr(prefix + 2)));
  }

  Result<Json> result(bool parsed) && {
    if (parsed) return std::move(root_);
    return fail(ErrorCode::malformed_json, "{}: {}", file_, message_);
  }

 private:
  Json* place(Json value) {
    if (open_.empty()) return &(root_ = std::move(value));
    if (open_.back()->is_object()) return &((*open_.back())[key_] = std::move(value));
    open_.back()->push_back(std::move(value));
    return &open_.back()->back();
  }
  bool add(Json value) { return place(std::move(value)) != nullptr; }
  bool open(Json value) {
    if (open_.size() == max_depth) {
      return refuse(fmt::format("values are nested deeper than {}", max_depth));
    }
    open_.push_back(place(std::move(value)));
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }
  bool refuse(std::string message) {
    message_ = std::move(message);
    return false;
  }

  std::string file_;
  Json root_;
  std::vector<Json*> open_;
  std::string key_;
  std::string message_;
};

bool is_plain(std::string_view key) {
  return !key.empty() && std::all_of(key.begin(), key.end(), [](unsigned char c) {
    return std::isalnum(c) || c == '_' || c == '-';
  });
}

std::string member_path(std::string_view path, std::string_view key) {
  if (!is_plain(key)) {
    const auto quoted = Json(key).dump(-1, ' ', false, Json::error_handler_t::replace);
    return fmt::format("{}[{}]", path, quoted);
  }
  return path.empty() ? std::string(key) : fmt::format("{}.{}", path, key);
}

}  // namespace

Result<Json> parse_json(std::string_view text, std::string_view file) {
  // The parser takes a NUL for the end of the text.
  if (text.find('\0') != std::string_view::npos) {
    return fail(ErrorCode::malformed_json, "{}: has a NUL byte at {}", file, text.find('\0'));
  }
  Builder builder(file);
  const bool parsed = Json::sax_parse(text.begin(), text.end(), &builder);
  return std::move(builder).result(parsed);
}

std::string canonical_json(const Json& value) {
  return value.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<Json> parse_canonical_json(std::string_view text, std::string_view file) {
  TRY_ASSIGN(Json value, parse_json(text, file));
  const std::string canonical = canonical_json(value);
  if (text != canonical) {
    const auto [found, expected] =
        std::mismatch(text.begin(), text.end(), canonical.begin(), canonical.end());
    return fail(ErrorCode::malformed_json,
                "{}: not in canonical form from byte {} on (sorted keys, two spaces of "
                "indentation, one newline at the end)",
                file, found - text.begin());
  }
  return value;
}

std::string JsonValue::where() const {
  return path_.empty() ? file_ : fmt::format("{}: {}", file_, path_);
}

std::string JsonValue::found() const {
  if (value_->is_object()) return "an object";
  if (value_->is_array()) return "an array";
  const std::string text = value_->dump(-1, ' ', true, Json::error_handler_t::replace);
  return text.size() <= 70 ? text : text.substr(0, 67) + "...";
}

tl::unexpected<Error> JsonValue::wrong_type(std::string_view expected) const {
  return fail(ErrorCode::wrong_type, "{}: expected {}, found {}", where(), expected, found());
}

Result<uint64_t> JsonValue::unsigned_integer(uint64_t largest) const {
  const bool negative = value_->is_number_integer() && !value_->is_number_unsigned() &&
                        value_->get_ref<const Json::number_integer_t&>() < 0;
  if (!value_->is_number_integer() || negative) return wrong_type("an unsigned integer");
  const uint64_t value = value_->get<uint64_t>();
  if (value > largest) {
    return fail(ErrorCode::bad_value, "{}: expected at most {}, found {}", where(), largest, value);
  }
  return value;
}

Result<double> JsonValue::number() const {
  if (!value_->is_number()) return wrong_type("a number");
  const double value = value_->get<double>();
  if (!std::isfinite(value)) return wrong_type("a finite number");
  return value;
}

Result<bool> JsonValue::boolean() const {
  if (!value_->is_boolean()) return wrong_type("true or false");
  return value_->get<bool>();
}

Result<std::string> JsonValue::string() const {
  if (!value_->is_string()) return wrong_type("a string");
  return value_->get_ref<const std::string&>();
}

Result<std::vector<JsonValue>> JsonValue::elements() const {
  if (!value_->is_array()) return wrong_type("an array");
  std::vector<JsonValue> values;
  values.reserve(value_->size());
  for (const Json& element : *value_) {
    values.emplace_back(element, file_, fmt::format("{}[{}]", path_, values.size()));
  }
  return values;
}

bool JsonObject::has(std::string_view key) const { return object_.json().contains(key); }

std::vector<std::string> JsonObject::keys() const {
  std::vector<std::string> keys;
  for (const auto& [key, value] : object_.json().items()) keys.push_back(key);
  return keys;
}

std::string JsonObject::where(std::string_view key) const {
  return fmt::format("{}: {}", object_.file_, member_path(object_.path_, key));
}

std::optional<JsonValue> JsonObject::lookup(std::string_view key) {
  const auto member = object_.json().find(key);
  if (member == object_.json().end()) return std::nullopt;
  read_.emplace(key);
  return JsonValue(*member, object_.file_, member_path(object_.path_, key));
}

Result<JsonValue> JsonObject::required(std::string_view key) {
  std::optional<JsonValue> value = lookup(key);
  if (!value) return fail(ErrorCode::missing_key, "{}: the key is missing", where(key));
  return *std::move(value);
}

std::vector<std::string> JsonObject::unread() const {
  std::vector<std::string> unread = keys();
  std::erase_if(unread, [&](const std::string& key) { return read_.contains(key); });
  return unread;
}

Result<void> JsonObject::finish() const {
  const std::vector<std::string> unknown = unread();
  if (unknown.empty()) return {};
  return fail(ErrorCode::unknown_key,
              "{}: the key is not known here; remove it, or use a version of Tandem that knows it",
              where(unknown.front()));
}

Result<JsonObject> open_json_object(std::string_view text, std::string_view file, Json& json) {
  TRY_ASSIGN(json, parse_json(text, file));
  return JsonValue(json, std::string(file)).as<JsonObject>();
}

}  // namespace tandem
