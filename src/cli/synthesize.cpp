// tandem synthesize: an artifact of random weights in a real model's geometry.
#include "exporter/synthesize.h"

#include <fmt/format.h>

#include <memory>

#include "base/error.h"
#include "cli/command.h"
#include "cli/interrupts.h"
#include "cli/numbers.h"
#include "cli/output.h"
#include "exporter/geometry.h"

namespace tandem::cli {
namespace {

struct Flags {
  std::string geometry;
  std::string out;
  bool assistant = false;
  exporter::SynthesizeOptions options;
};

Result<void> run(Flags flags) {
  TRY_ASSIGN(const spec::Config config, exporter::geometry(flags.geometry));
  if (flags.assistant) {
    TRY_ASSIGN(flags.options.assistant, exporter::assistant_geometry(flags.geometry));
  }
  const Interrupts interrupts(ending_signals);
  flags.options.cancel = &interrupted;
  TRY_ASSIGN(const exporter::SynthesizeReport report,
             exporter::synthesize(config, flags.out, flags.options, progress_bar("synthesizing")));
  fmt::print("{}: {} of random weights (seed {}), digest {}\n", printable(flags.out),
             megabytes(report.bytes), flags.options.seed, report.digest.hex());
  return {};
}

}  // namespace

Command synthesize(CLI::App& parent) {
  const auto flags = std::make_shared<Flags>();
  CLI::App* app = parent.add_subcommand(
      "synthesize", "Make an artifact of random weights, for measuring speed without a checkpoint");
  app->add_option("--geometry", flags->geometry,
                  "The model whose sizes it has: " + exporter::geometry_names())
      ->required();
  app->add_flag("--assistant", flags->assistant, "With an assistant of that model's sizes");
  app->add_option("-o,--out", flags->out,
                  "The artifact folder to make; one that exists is not replaced")
      ->required();
  app->add_option_function<std::string>(
      "--seed",
      [flags](const std::string& text) { flags->options.seed = read_whole_number("--seed", text); },
      "Of the weights: the same seed, the same bytes (default: 1)");
  app->add_option("--threads", flags->options.threads, "Threads (default: one for each core)");
  app->footer(
      "Its receipt says that it is synthetic. It costs what the real model costs and answers with "
      "noise.\n"
      "Example: tandem synthesize --geometry e2b --assistant -o e2b-random");
  return {app, [flags] { return run(*flags); }};
}

}  // namespace tandem::cli
