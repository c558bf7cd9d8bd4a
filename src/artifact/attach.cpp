#include "artifact/attach.h"

#include <vector>

#include "base/error.h"

namespace tandem::artifact {
namespace {

Json plain_json(const Manifest& manifest) {
  return Json::parse(manifest_text(plain_part(manifest)), nullptr, false);
}

// The value at a place of a manifest, in a few characters.
std::string shown(const Json& manifest, const Json::json_pointer& place) {
  return manifest.contains(place) ? JsonValue(manifest[place], {}).found() : "nothing";
}

// "/config/hidden_size: 64 there, 128 here"
std::vector<std::string> differences(const Json& there, const Json& here) {
  std::vector<std::string> result;
  for (const Json& change : Json::diff(there, here)) {
    const Json::json_pointer place(change.at("path").get<std::string>());
    result.push_back(fmt::format("{}: {} there, {} here", place.to_string(), shown(there, place),
                                 shown(here, place)));
  }
  return result;
}

}  // namespace

Result<void> check_attached(const Named& attached, const Named& plain) {
  if (!attached.manifest.attached_to) {
    return fail(ErrorCode::bad_value,
                "{}: attached_to: expected {}, the digest of {}, found null; make an attached "
                "assistant with `tandem export --assistant FOLDER --onto {}`",
                attached.folder, plain.digest.hex(), plain.folder, plain.folder);
  }
  if (plain.manifest.mtp) {
    return fail(ErrorCode::bad_value,
                "{}: attached to the artifact {}, but {} is {}, which has an assistant of its own",
                attached.folder, attached.manifest.attached_to->hex(), plain.folder,
                plain.digest.hex());
  }
  const std::vector<std::string> found =
      differences(plain_json(attached.manifest), plain_json(plain.manifest));
  if (found.empty() && *attached.manifest.attached_to == plain.digest) return {};
  return fail(ErrorCode::bad_value, "{}: attached to the artifact {}, but {} is {}{}",
              attached.folder, attached.manifest.attached_to->hex(), plain.folder,
              plain.digest.hex(), found.empty() ? "" : "; they differ in " + first_few(found));
}

}  // namespace tandem::artifact
