// tandem verify: whether every byte of an artifact is what it should be, and where it comes from.
#include "artifact/verify.h"

#include <fmt/format.h>

#include <memory>

#include "artifact/release.h"
#include "base/error.h"
#include "base/files.h"
#include "cli/command.h"
#include "cli/engine_flags.h"
#include "cli/output.h"
#include "cli/provenance.h"
#include "engine/prompts.h"

namespace tandem::cli {
namespace {

// What was checked, in the order of docs/artifact.md.
void print(const artifact::Verification& found, const artifact::Provenance& provenance) {
  const artifact::Artifact& artifact = found.artifact;
  const artifact::Manifest& manifest = artifact.manifest();
  fmt::print("receipt       canonical, with its own digest; agrees with the manifest\n");
  fmt::print("manifest      canonical; agrees with its config and with itself\n");
  if (manifest.attached_to) {
    fmt::print("assistant     attached to {}, which the artifact is\n",
               manifest.attached_to->hex());
  }
  fmt::print("files         {} in all and no other; tokenizer and texts hashed, and they open\n",
             found.files);
  fmt::print("weights       {} in {}, {}; {}, every byte hashed\n",
             counted(manifest.tensors.size(), "tensor"), counted(manifest.shards.size(), "shard"),
             megabytes(artifact.plan().bytes), counted(artifact.plan().pieces.size(), "piece"));
  if (manifest.mtp && manifest.mtp->token_ordering)
    fmt::print("token order   names each of {} tokens once\n", manifest.config.vocabulary);
  fmt::print("{}", describe(provenance));
}

// The modules lie beside their release.json.
Result<void> verify_release(const std::filesystem::path& file, const Digest& artifact) {
  TRY_ASSIGN(const std::string text, read_file(file, 1 << 20));
  TRY_ASSIGN(const artifact::Release release, artifact::read_release(text));
  TRY(artifact::verify_release(release, artifact, file.parent_path()));
  fmt::print(
      "release       canonical; its artifact is this one, its eight modules are beside it\n");
  return {};
}

Result<void> run(const ArtifactFlags& flags, const std::string& release) {
  TRY_ASSIGN(const std::vector<artifact::Pins> pins, artifact::known_pins(flags.sources));
  TRY_ASSIGN(const artifact::Verification found,
             artifact::verify(flags.artifact, progress_bar("verifying"), flags.assistant));
  TRY(engine::Prompts::open(found.artifact));
  TRY_ASSIGN(const text::GenerationConfig generation, engine::generation_config(found.artifact));
  const artifact::Provenance provenance = artifact::provenance(found.artifact.receipt(), pins);
  if (flags.require_verified) TRY(artifact::require_verified(provenance, flags.artifact));
  print(found, provenance);
  fmt::print("{}", ignored_settings(generation.ignored));
  if (!release.empty()) TRY(verify_release(release, found.artifact.digest()));
  fmt::print("digest        {}\n", found.artifact.digest().hex());
  return {};
}

}  // namespace

Command verify(CLI::App& parent) {
  const auto flags = std::make_shared<ArtifactFlags>();
  CLI::App* app =
      parent.add_subcommand("verify", "Check every byte of an artifact; exit 0 or say why not");
  flags->add(*app);
  const auto release = std::make_shared<std::string>();
  app->add_option("--release", *release,
                  "A release.json of it: the browser modules beside it, too");
  return {app, [flags, release] { return run(*flags, *release); }};
}

}  // namespace tandem::cli
