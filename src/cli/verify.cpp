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
  const auto artifact = std::make_shared<std::string>();
  CLI::App* app =
      parent.add_subcommand("verify", "Check every byte of an artifact; exit 0 or say why not");
  app->add_option("artifact", *artifact, "Folder of the artifact")->required();
  return {app, [artifact]() -> Result<void> {
            TRY_ASSIGN(const artifact::Verification found,
                       artifact::verify(*artifact, progress_bar("verifying")));
            TRY_ASSIGN(const artifact::Artifact opened, artifact::Artifact::open(*artifact));
            TRY(engine::Prompts::open(opened));
            TRY(engine::stop_ids(opened));
            fmt::print("{}: {} tensors in {} files, {} of weights, digest {}\n", *artifact,
                       found.tensors, found.files, megabytes(found.bytes), found.digest.hex());
            return {};
          }};
}

}  // namespace tandem::cli
