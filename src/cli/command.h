// What every subcommand is: options registered with CLI11, and an action for when it was given.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

#include "tandem/error.h"

namespace tandem::cli {

struct Command {
  CLI::App* app = nullptr;
  std::function<Result<void>()> run;
};

Command bench(CLI::App& parent);
Command chat(CLI::App& parent);
Command devices(CLI::App& parent);
Command export_checkpoint(CLI::App& parent);
Command generate(CLI::App& parent);
Command inspect(CLI::App& parent);
Command logits(CLI::App& parent);
Command profile(CLI::App& parent);
Command release(CLI::App& parent);
Command score(CLI::App& parent);
Command synthesize(CLI::App& parent);
Command tokenize(CLI::App& parent);
Command tune(CLI::App& parent);
Command verify(CLI::App& parent);

}  // namespace tandem::cli
