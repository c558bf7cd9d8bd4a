// Artifacts whose files somebody else has fetched.
#include "artifact/artifact.h"
#include "base/error.h"

namespace tandem::artifact {

Result<Artifact> Artifact::in_memory(std::string_view manifest, std::optional<View> view) {
  Artifact artifact;
  TRY_ASSIGN(artifact.manifest_, read_manifest(manifest));
  artifact.digest_ = sha256(manifest);
  const View all = artifact.manifest_.mtp ? View::mtp : View::plain;
  TRY_ASSIGN(artifact.plan_, make_load_plan(artifact.manifest_, view.value_or(all)));
  return artifact;
}

Result<void> Artifact::add_metadata(std::string tokenizer,
                                    std::optional<std::string> generation_config) {
  TRY(check_bytes(manifest_.tokenizer, tokenizer));
  tokenizer_ = std::move(tokenizer);
  if (generation_config.has_value() != manifest_.generation_config.has_value()) {
    return fail(ErrorCode::missing_key, "generation config: {} has {}, {} was given", manifest_file,
                manifest_.generation_config ? "one" : "none", generation_config ? "one" : "none");
  }
  if (generation_config) TRY(check_bytes(*manifest_.generation_config, *generation_config));
  generation_config_ = std::move(generation_config);
  return {};
}

}  // namespace tandem::artifact
