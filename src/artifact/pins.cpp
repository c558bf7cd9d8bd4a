#include "artifact/pins.h"

#include "base/error.h"
#include "base/files.h"

namespace tandem::artifact {

// models/sources.json, from sources.cpp.in.
extern const std::string_view built_in_sources;

namespace {

constexpr std::string_view schema = "tandem.sources";
constexpr uint32_t sources_version = 2;
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
  TRY_ASSIGN(pin.role, object.get<std::string>("role"));
  if (pin.role != target_role && pin.role != assistant_role)
    return bad_value(object.where("role"), "target or assistant", pin.role);
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

std::string describe(const PinnedFile& file) {
  return fmt::format("{} bytes of sha256 {}", file.bytes,
                     file.sha256 ? file.sha256->hex() : "null");
}

// Whether what is known of one file is not what is known of the other.
bool differ(const PinnedFile& a, const PinnedFile& b) {
  return a.bytes != b.bytes || (a.sha256 && b.sha256 && a.sha256 != b.sha256);
}

// Refuses a pin that contradicts another. `where` names its list.
Result<void> check_together(const std::string& where, const Pin& pin, const Pin& other) {
  if (pin.name == other.name) return bad_value(where, "each name once", pin.name + " again");
  const bool same_place = pin.published && pin.published == other.published;
  for (const PinnedFile& file : pin.files) {
    for (const PinnedFile& own : other.files) {
      const bool same_file = same_place && file.file == own.file;
      const bool same_content = file.sha256 && file.sha256 == own.sha256;
      if ((!same_file && !same_content) || !differ(file, own)) continue;
      return fail(ErrorCode::bad_value, "{}: pin {}: {}: expected {}, as in the pin {}, found {}",
                  where, pin.name, file.file, describe(own), other.name, describe(file));
    }
  }
  return {};
}

}  // namespace

Result<Pins> read_pins(std::string_view text, std::string_view file) {
  TRY_ASSIGN(const Json json, parse_canonical_json(text, file));
  TRY_ASSIGN(JsonObject object, JsonValue(json, std::string(file)).as<JsonObject>());
  TRY(expect(object, "schema", schema));
  TRY(expect(object, "schema_version", sources_version));
  TRY_ASSIGN(const std::vector<JsonObject> entries, object.get<std::vector<JsonObject>>("pins"));
  Pins pins{std::string(file), sha256(text), {}};
  for (const JsonObject& entry : entries) {
    TRY_ASSIGN(Pin pin, read_pin(entry));
    for (const Pin& other : pins.pins) TRY(check_together(object.where("pins"), pin, other));
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
    for (const Pin& other : all[0].pins) TRY(check_together(users.string(), pin, other));
  }
  all.push_back(std::move(own));
  return all;
}

}  // namespace tandem::artifact
