// tandem verify: whether every byte of an artifact is what it should be.
#include "artifact/verify.h"

#include <fmt/format.h>

#include <memory>

#include "base/error.h"
#include "cli/command.h"
#include "cli/output.h"
#include "engine/prompts.h"

namespace tandem::cli {

Command verify(CLI::App& parent) {
  const auto folder = std::make_shared<std::string>();
  CLI::App* app =
      parent.add_subcommand("verify", "Check every byte of an artifact; exit 0 or say why not");
  app->add_option("artifact", *folder, "Folder of the artifact")->required();
  return {app, [folder]() -> Result<void> {
            TRY_ASSIGN(const artifact::Verification found,
                       artifact::verify(*folder, progress_bar("verifying")));
            const artifact::Artifact& artifact = found.artifact;
            TRY(engine::Prompts::open(artifact));
            TRY(engine::generation_config(artifact));
            fmt::print("{}: {}{} tensors in {} files, {} of weights, digest {}\n", *folder,
                       artifact.receipt().synthetic_seed ? "synthetic, " : "",
                       artifact.manifest().tensors.size(), found.files,
                       megabytes(artifact.plan().bytes), artifact.digest().hex());
            return {};
          }};
}

}  // namespace tandem::cli
