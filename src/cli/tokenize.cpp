// tandem tokenize: text to token ids and back, without a device.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "artifact/artifact.h"
#include "base/error.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/prompt_flags.h"
#include "engine/prompts.h"

namespace tandem::cli {
namespace {

struct Flags {
  std::string artifact;
  PromptFlags prompt;
};

Result<void> run(const Flags& flags) {
  TRY_ASSIGN(const artifact::Artifact artifact, artifact::Artifact::open(flags.artifact));
  TRY_ASSIGN(const engine::Prompts prompts, engine::Prompts::open(artifact));
  const text::Tokenizer& tokenizer = prompts.tokenizer();
  if (!flags.prompt.ids.empty()) {
    TRY_ASSIGN(const std::string text, tokenizer.decode(flags.prompt.ids));
    fmt::print("{}\n", answer_text(text));
    return {};
  }
  TRY_ASSIGN(const std::vector<uint32_t> ids, flags.prompt.encode(prompts));
  for (uint32_t id : ids) {
    // Quoted as JSON, so that spaces, newlines and bytes that are no text show.
    const std::string piece(tokenizer.piece(id));
    fmt::print("{:>7}  {}\n", id,
               printable(nlohmann::json(piece).dump(-1, ' ', false,
                                                    nlohmann::json::error_handler_t::replace)));
  }
  fmt::print("{}\n", fmt::join(ids, ","));
  return {};
}

}  // namespace

Command tokenize(CLI::App& parent) {
  const auto flags = std::make_shared<Flags>();
  CLI::App* app =
      parent.add_subcommand("tokenize", "Show the token ids of a text, or the text of ids");
  app->add_option("artifact", flags->artifact, "Folder of the artifact")->required();
  flags->prompt.add(*app);
  app->footer(
      "For a text: one line for each token, then all ids on the last line. For ids: their text.");
  return {app, [flags] { return run(*flags); }};
}

}  // namespace tandem::cli
