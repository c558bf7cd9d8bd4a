#include "artifact/attach.h"

#include <vector>

#include "artifact/differences.h"
#include "base/error.h"

namespace tandem::artifact {
namespace {

Json plain_json(const Manifest& manifest) {
  return Json::parse(manifest_text(plain_part(manifest)), nullptr, false);
}

// "/config/hidden_size: 64 there, 128 here"
std::vector<std::string> in_words(const std::vector<Difference>& differences) {
  std::vector<std::string> result;
  for (const Difference& d : differences)
    result.push_back(fmt::format("{}: {} there, {} here", d.place, d.expected, d.found));
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
      in_words(differences(plain_json(attached.manifest), plain_json(plain.manifest)));
  if (found.empty() && *attached.manifest.attached_to == plain.digest) return {};
  return fail(ErrorCode::bad_value, "{}: attached to the artifact {}, but {} is {}{}",
              attached.folder, attached.manifest.attached_to->hex(), plain.folder,
              plain.digest.hex(), found.empty() ? "" : "; they differ in " + first_few(found));
}

}  // namespace tandem::artifact
