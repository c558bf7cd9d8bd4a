#include "artifact/release.h"

#include <set>

#include "base/error.h"
#include "base/files.h"

namespace tandem::artifact {
namespace {

constexpr std::string_view schema = "tandem.release";
constexpr uint32_t release_schema_version = 1;
constexpr uint64_t max_module_bytes = 64 << 20;

// What a wasm file holds once each, up to a NUL: exports.cpp and embed_wgsl.py put them there.
constexpr std::string_view module_stamp = "tandem module ";
constexpr std::string_view closure_stamp = "tandem kernel closure ";

// The builds in the order of their files.
struct Row {
  std::string_view target;
  std::string_view build;
  std::string_view file;  // without its extension
};
constexpr Row rows[] = {{"plain", "wall", "webgpu_llama"},
                        {"plain", "profile", "webgpu_llama.profile"},
                        {"mtp", "wall", "gemma4_mtp"},
                        {"mtp", "profile", "gemma4_mtp.profile"}};

template <class Release>
auto& target_of(Release& release, const Row& row) {
  return row.target == "plain" ? release.plain : release.mtp;
}
template <class Target>
auto& build_of(Target& target, const Row& row) {
  return row.build == "wall" ? target.wall : target.profile;
}

Json to_json(const ReleaseBuild& build) {
  return {{"js", to_json(build.js)}, {"wasm", to_json(build.wasm)}};
}

Json to_json(const ReleaseTarget& target) {
  return {{"kernel_closure", target.kernel_closure.hex()},
          {"wall", to_json(target.wall)},
          {"profile", to_json(target.profile)}};
}

Result<BoundFile> read_module_file(JsonObject& build, const Row& row, std::string_view kind) {
  TRY_ASSIGN(const JsonObject object, build.get<JsonObject>(kind));
  TRY_ASSIGN(BoundFile file, read_bound_file(object));
  const std::string expected = fmt::format("{}.{}", row.file, kind);
  if (file.file == expected) return file;
  return fail(ErrorCode::bad_value, "{}: file: expected {}, found {}", build.where(kind), expected,
              file.file);
}

Result<ReleaseBuild> read_build(JsonObject& target, const Row& row) {
  TRY_ASSIGN(JsonObject object, target.get<JsonObject>(row.build));
  ReleaseBuild build;
  TRY_ASSIGN(build.js, read_module_file(object, row, "js"));
  TRY_ASSIGN(build.wasm, read_module_file(object, row, "wasm"));
  TRY(object.finish());
  return build;
}

Result<Release> read_fields(JsonObject object) {
  Release release;
  TRY(expect(object, "schema", schema));
  TRY(expect(object, "schema_version", release_schema_version));
  TRY_ASSIGN(release.engine, object.get<std::string>("engine"));
  TRY_ASSIGN(release.artifact, read_digest(object, "artifact"));
  TRY_ASSIGN(JsonObject targets, object.get<JsonObject>("targets"));
  for (const std::string_view name : {"plain", "mtp"}) {
    TRY_ASSIGN(JsonObject target, targets.get<JsonObject>(name));
    for (const Row& row : rows) {
      if (row.target != name) continue;
      TRY_ASSIGN(build_of(target_of(release, row), row), read_build(target, row));
      TRY_ASSIGN(target_of(release, row).kernel_closure, read_digest(target, "kernel_closure"));
    }
    TRY(target.finish());
  }
  TRY(targets.finish());
  TRY(object.finish());
  return release;
}

// What follows a stamp in a wasm file.
Result<std::string> stamped(const std::string& file, std::string_view wasm,
                            std::string_view stamp) {
  const size_t at = wasm.find(stamp);
  if (at == wasm.npos || wasm.find(stamp, at + 1) != wasm.npos) {
    return fail(ErrorCode::malformed_artifact,
                "{}: expected one stamp \"{}...\", as a module of Tandem has; build it again", file,
                stamp);
  }
  const std::string_view rest = wasm.substr(at + stamp.size());
  return std::string(rest.substr(0, rest.find('\0')));
}

Result<std::string> read_module(const std::filesystem::path& folder, const Row& row,
                                std::string_view kind, BoundFile& file) {
  file.file = fmt::format("{}.{}", row.file, kind);
  TRY_ASSIGN(const std::filesystem::path path, inside(folder, file.file));
  TRY_ASSIGN(std::string bytes, read_file(path, max_module_bytes));
  file.bytes = bytes.size();
  file.sha256 = sha256(bytes);
  return bytes;
}

Result<void> check_folder(const std::filesystem::path& folder) {
  std::set<std::string> own = {std::string(release_file)};
  for (const Row& row : rows) {
    own.insert(fmt::format("{}.js", row.file));
    own.insert(fmt::format("{}.wasm", row.file));
  }
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (own.contains(entry->path().filename().string())) continue;
    return fail(ErrorCode::malformed_artifact, "{}: not a file of the modules; remove it",
                entry->path().string());
  }
  if (!error) return {};
  return fail(ErrorCode::io, "{}: cannot list the folder: {}", folder.string(), error.message());
}

}  // namespace

std::string release_text(const Release& release) {
  return canonical_json(
      {{"schema", schema},
       {"schema_version", release_schema_version},
       {"engine", release.engine},
       {"artifact", release.artifact.hex()},
       {"targets", {{"plain", to_json(release.plain)}, {"mtp", to_json(release.mtp)}}}});
}

Result<Release> read_release(std::string_view text) {
  const std::string file(release_file);
  Json json;
  TRY_ASSIGN(const JsonObject object, open_json_object(text, file, json));
  TRY_ASSIGN(Release release, read_fields(object));
  if (release_text(release) == text) return release;
  return fail(ErrorCode::malformed_artifact, "{}: not in its canonical form; make it again", file);
}

Result<Release> make_release(const Digest& artifact, const std::filesystem::path& modules) {
  TRY(check_folder(modules));
  Release release;
  release.artifact = artifact;
  for (const Row& row : rows) {
    ReleaseTarget& target = target_of(release, row);
    ReleaseBuild& build = build_of(target, row);
    TRY(read_module(modules, row, "js", build.js));
    TRY_ASSIGN(const std::string wasm, read_module(modules, row, "wasm", build.wasm));
    TRY_ASSIGN(const std::string stamp, stamped(build.wasm.file, wasm, module_stamp));
    const std::string version = stamp.substr(0, stamp.find(' '));
    if (release.engine.empty()) release.engine = version;
    const std::string expected = fmt::format("{} {} {}", release.engine, row.target, row.build);
    if (stamp != expected) {
      return fail(ErrorCode::malformed_artifact, "{}: expected the module {}, found {}",
                  build.wasm.file, expected, stamp);
    }
    TRY_ASSIGN(const std::string closure, stamped(build.wasm.file, wasm, closure_stamp));
    const std::optional<Digest> digest = Digest::from_hex(closure);
    const bool first = row.build == "wall";
    if (!digest || (!first && *digest != target.kernel_closure)) {
      return fail(ErrorCode::malformed_artifact,
                  "{}: kernel closure {}: expected that of {}'s wall build, {}", build.wasm.file,
                  closure, row.target, target.kernel_closure.hex());
    }
    target.kernel_closure = *digest;
  }
  return release;
}

Result<void> verify_release(const Release& release, const Digest& artifact,
                            const std::filesystem::path& modules) {
  if (release.artifact != artifact) {
    return fail(ErrorCode::hash_mismatch, "{}: artifact: expected {}, found {}", release_file,
                artifact.hex(), release.artifact.hex());
  }
  TRY_ASSIGN(const Release found, make_release(artifact, modules));
  for (const Row& row : rows) {
    const ReleaseBuild& expected = build_of(target_of(release, row), row);
    const ReleaseBuild& build = build_of(target_of(found, row), row);
    for (const auto& [bound, file] :
         {std::pair(&expected.js, &build.js), std::pair(&expected.wasm, &build.wasm)}) {
      if (*bound == *file) continue;
      return fail(ErrorCode::hash_mismatch, "{}: expected {} bytes of sha256 {}, found {} of {}",
                  file->file, bound->bytes, bound->sha256.hex(), file->bytes, file->sha256.hex());
    }
  }
  if (release_text(found) == release_text(release)) return {};
  return fail(ErrorCode::malformed_artifact,
              "{}: engine {} or a kernel closure is not what the modules say", release_file,
              release.engine);
}

}  // namespace tandem::artifact
