// tandem tune: measures how a model's matrix products of decoding run fastest on an adapter.
#include <fmt/format.h>

#include <memory>

#include "base/error.h"
#include "cli/command.h"
#include "cli/engine_flags.h"
#include "cli/tuning_table.h"
#include "engine/tuning.h"
#include "engine/tuning_file.h"

namespace tandem::cli {
namespace {

Result<void> run(const EngineFlags& flags) {
  const EngineOptions options = flags.options();
  if (options.place == Place::cpu) {
    return fail(ErrorCode::invalid_argument, "--device cpu: a GPU is tuned; leave it out");
  }
  TRY_ASSIGN(const engine::OpenedArtifact source, engine::open_artifact(flags.artifact, options));
  TRY_ASSIGN(engine::OpenedModel opened, engine::open_model(source.artifact, options));
  const gpu::AdapterInfo& adapter = opened.device->info();
  TRY(engine::check_tunable(adapter));
  TRY(engine::load_weights(source.artifact, *opened.model, options));
  ops::TunedProducts tuned;
  TRY(engine::measure_tuning(opened, tuned));
  print_tuning(opened, tuned);
  if (options.tuning_folder.empty()) {
    fmt::print("\nnot kept: {}\n", flags.tuning == "off"
                                       ? "--tuning off"
                                       : "neither XDG_CACHE_HOME nor HOME is an absolute path");
    return {};
  }
  const std::filesystem::path file = engine::tuning_file(options.tuning_folder, adapter);
  // Of other models.
  if (Result<ops::TunedProducts> kept = engine::read_tuning(file, adapter)) tuned.merge(*kept);
  TRY(engine::write_tuning(file, adapter, tuned));
  fmt::print("\nkept in {}\n", printable(file.string()));
  return {};
}

}  // namespace

Command tune(CLI::App& parent) {
  const auto flags = std::make_shared<EngineFlags>();
  CLI::App* app = parent.add_subcommand(
      "tune", "Measure anew how matrix products of decoding run fastest on a GPU, and keep it");
  flags->add(*app);
  app->footer(
      "Commands that open an engine do this by themselves, once, for what was not measured; with\n"
      "--tuning off they do not, and here nothing is kept. Products of int8 are others than those "
      "of\n"
      "f32: with --activations int8 they are measured. `tandem inspect --routes` shows what "
      "is\n"
      "kept.");
  return {app, [flags] { return run(*flags); }};
}

}  // namespace tandem::cli
