// The command line: picks the subcommand, and turns an error into a message and an exit status (1;
// 2 for wrong usage).
#include <fmt/format.h>

#include <cstdio>
#include <vector>

#include "cli/command.h"

int main(int argc, char** argv) {
  using namespace tandem;
  CLI::App app{"Tandem runs Gemma 4 on WebGPU. `tandem COMMAND --help` explains each command."};
  app.require_subcommand(1);
  app.set_version_flag("--version", "tandem " TANDEM_VERSION);
  const std::vector<cli::Command> commands{
      cli::generate(app), cli::logits(app), cli::tokenize(app), cli::export_checkpoint(app),
      cli::inspect(app),  cli::verify(app), cli::devices(app)};
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  for (const cli::Command& command : commands) {
    if (!command.app->parsed()) continue;
    const Result<void> result = command.run();
    if (result) return 0;
    fmt::print(stderr, "tandem {}: {} [{}: {}]\n", command.app->get_name(), result.error().message,
               name(result.error().code), meaning(result.error().code));
    return 1;
  }
  return 2;
}
