// tandem release: binds an artifact to the browser's modules.
#include "artifact/release.h"

#include <fmt/format.h>

#include <memory>

#include "artifact/artifact.h"
#include "base/publication.h"
#include "cli/command.h"

namespace tandem::cli {
namespace {

struct Flags {
  std::string artifact;
  std::string modules;
  std::string output;
};

Result<void> run(const Flags& flags) {
  TRY_ASSIGN(const artifact::Artifact artifact,
             artifact::Artifact::open(flags.artifact, std::nullopt));
  TRY_ASSIGN(const artifact::Release release,
             artifact::make_release(artifact.digest(), flags.modules));
  TRY_ASSIGN(FilePublication publication, FilePublication::begin(flags.output));
  TRY(publication.file().write(artifact::release_text(release)));
  TRY(publication.commit());
  fmt::print("{}: engine {}, artifact {}\n", printable(flags.output), printable(release.engine),
             release.artifact.hex());
  return {};
}

}  // namespace

Command release(CLI::App& parent) {
  const auto flags = std::make_shared<Flags>();
  CLI::App* app =
      parent.add_subcommand("release", "Bind an artifact to the browser's modules by sha256");
  app->add_option("artifact", flags->artifact, "Folder of the artifact")->required();
  app->add_option("--web", flags->modules, "Folder of the eight files of `make web`")->required();
  app->add_option("-o,--output", flags->output, "The new release.json")->required();
  return {app, [flags] { return run(*flags); }};
}

}  // namespace tandem::cli
