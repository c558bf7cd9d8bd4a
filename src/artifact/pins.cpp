#include "artifact/pins.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/files.h"

namespace tandem::artifact {

// models/sources.json, from sources.cpp.in.
extern const std::string_view built_in_sources;

namespace {

constexpr std::string_view schema = "tandem.sources";
constexpr uint32_t sources_version = 1;
constexpr uint64_t max_bytes = 16 << 20;

tl::unexpected<Error> bad_value(const std::string& where, std::string_view expected,
                                std::string_view found) {
  return fail(ErrorCode::bad_value, "{}: expected {}, found {}", where, expected, found);
}

Result<PinnedFile> read_file_pin(JsonObject object) {
  PinnedFile file;
  TRY_ASSIGN(file.file, object.get<std::string>("file"));
  if (!inside("", file.file)) {
    return fail(ErrorCode::unsafe_path, "{}: expected the plain name of a file, found \"{}\"",
                object.where("file"), file.file);
  }
  TRY_ASSIGN(file.bytes, object.get<uint64_t>("bytes"));
  TRY_ASSIGN(const auto hash, read_nullable<std::string>(object, "sha256"));
  if (hash) {
    TRY_ASSIGN(file.sha256, read_digest(object, "sha256"));
  }
  TRY(object.finish());
  return file;
}

Result<Pin> read_pin(JsonObject object) {
  Pin pin;
  TRY_ASSIGN(pin.name, object.get<std::string>("name"));
  if (pin.name.empty()) return bad_value(object.where("name"), "a name", "none");
  TRY_ASSIGN(pin.published, read_published(object));
  TRY_ASSIGN(const std::vector<JsonObject> files, object.get<std::vector<JsonObject>>("files"));
  if (files.empty()) return bad_value(object.where("files"), "at least one file", "none");
  for (const JsonObject& entry : files) {
    TRY_ASSIGN(PinnedFile file, read_file_pin(entry));
    if (!pin.files.empty() && pin.files.back().file >= file.file) {
      return bad_value(object.where("files"), "files by name, each once",
                       file.file + " after " + pin.files.back().file);
    }
    pin.files.push_back(std::move(file));
  }
  TRY(object.finish());
  return pin;
}

}  // namespace

Result<Pins> read_pins(std::string_view text, std::string_view file) {
  TRY_ASSIGN(const Json json, parse_canonical_json(text, file));
  TRY_ASSIGN(JsonObject object, JsonValue(json, std::string(file)).as<JsonObject>());
  TRY(expect(object, "schema", schema));
  TRY(expect(object, "schema_version", sources_version));
  TRY_ASSIGN(const std::vector<JsonObject> entries, object.get<std::vector<JsonObject>>("pins"));
  Pins pins{std::string(file), sha256(text), {}};
  std::set<std::string> names;
  for (const JsonObject& entry : entries) {
    TRY_ASSIGN(Pin pin, read_pin(entry));
    if (!names.insert(pin.name).second)
      return bad_value(object.where("pins"), "each name once", pin.name + " again");
    pins.pins.push_back(std::move(pin));
  }
  TRY(object.finish());
  return pins;
}

Result<std::vector<Pins>> known_pins(const std::filesystem::path& users) {
  TRY_ASSIGN(Pins built_in, read_pins(built_in_sources, "models/sources.json"));
  std::vector<Pins> all = {std::move(built_in)};
  if (users.empty()) return all;
  TRY_ASSIGN(const std::string text, read_file(users, max_bytes, Links::follow));
  TRY_ASSIGN(Pins own, read_pins(text, users.string()));
  for (const Pin& pin : own.pins) {
    const auto is_its = [&](const Pin& other) { return other.name == pin.name; };
    if (std::any_of(all[0].pins.begin(), all[0].pins.end(), is_its))
      return bad_value(users.string(), "names that models/sources.json does not have", pin.name);
  }
  all.push_back(std::move(own));
  return all;
}

}  // namespace tandem::artifact
