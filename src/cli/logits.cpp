// tandem logits: the logits after token ids, as a safetensors file.
#include <fmt/format.h>

#include <memory>

#include "artifact/safetensors.h"
#include "base/error.h"
#include "base/publication.h"
#include "cli/command.h"
#include "cli/engine_flags.h"
#include "cli/output.h"
#include "cli/prompt_flags.h"

namespace tandem::cli {
namespace {

struct Flags {
  EngineFlags engine;
  PromptFlags prompt;
  std::string out;
  bool all_rows = false;
};

Result<void> run(const Flags& flags) {
  // Begun first, so that a file that cannot be made costs no computation.
  TRY_ASSIGN(FilePublication out, FilePublication::begin(flags.out));
  TRY_ASSIGN(Engine engine, Engine::open(flags.engine.artifact, flags.engine.options()));
  TRY_ASSIGN(const std::vector<uint32_t> ids, flags.prompt.encode(engine));
  TRY_ASSIGN(Session session, engine.session());
  const uint64_t rows = flags.all_rows ? ids.size() : 1;
  const uint64_t vocabulary = engine.info().vocabulary;
  artifact::SafetensorsEntry entry{"logits", "F32", {rows, vocabulary}, 0, rows * vocabulary * 4};
  TRY(out.file().write(artifact::make_safetensors_header({&entry, 1})));
  const auto write = [&](uint32_t, std::span<const float> band) {
    return out.file().write(std::as_bytes(band));
  };
  if (flags.all_rows) {
    TRY(session.all_logits(ids, write));
  } else {
    TRY_ASSIGN(const std::vector<float> last, session.logits(ids));
    TRY(write(0, last));
  }
  TRY(out.commit());
  fmt::print("{}: logits [{}, {}] after {}, adapter: {}\n", printable(flags.out), rows, vocabulary,
             counted(ids.size(), "id"), adapter(engine.info()));
  return {};
}

}  // namespace

Command logits(CLI::App& parent) {
  const auto flags = std::make_shared<Flags>();
  CLI::App* app =
      parent.add_subcommand("logits", "Write the logits after a prompt to a safetensors file");
  flags->engine.add(*app);
  flags->prompt.add(*app);
  app->add_option("-o,--out", flags->out, "The file to make; one that exists is not replaced")
      ->required();
  app->add_flag("--all-rows", flags->all_rows, "The logits after each id, not only after the last");
  app->footer(
      "The file holds one F32 tensor `logits` [rows, vocabulary].\n"
      "Example: tandem logits models/atlas --ids 2,10,11 -o out.safetensors --all-rows");
  return {app, [flags] { return run(*flags); }};
}

}  // namespace tandem::cli
