// Registers the options of an artifact and an engine.
#include "cli/engine_flags.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

#include "base/error.h"
#include "cli/output.h"

namespace tandem::cli {
namespace {

// In the user's cache folder, as the XDG Base Directory Specification says; empty without one.
std::string tuning_folder() {
  for (const auto& [variable, below] : {std::pair("XDG_CACHE_HOME", ""), {"HOME", ".cache"}}) {
    const char* value = std::getenv(variable);
    if (value == nullptr || !std::filesystem::path(value).is_absolute()) continue;
    return (std::filesystem::path(value) / below / "tandem" / "tuning").string();
  }
  return {};
}

}  // namespace

void ArtifactFlags::add(CLI::App& app) {
  app.add_option("artifact", artifact, "Folder of the artifact, as `tandem export` made it")
      ->required();
  app.add_option("--assistant", assistant,
                 "Folder of an assistant that `tandem export --onto` attached to the artifact");
  app.add_flag("--require-verified", require_verified,
               "Refuse an artifact whose source files do not all match a pin");
  app.add_option("--sources", sources,
                 "A file of your own pins, in the form of models/sources.json");
}

void EngineFlags::add(CLI::App& app) {
  ArtifactFlags::add(app);
  app.add_option("--device", device, "gpu: WebGPU; cpu: the plain C++ reference (slow)")
      ->check(CLI::IsMember({"gpu", "cpu"}))
      ->capture_default_str();
  app.add_option("--adapter", adapter,
                 "A part of the GPU adapter's name, or \"software\"; see `tandem devices`")
      ->envname("TANDEM_ADAPTER");
  app.add_option("--disable", disabled_tiers, "Keep a faster route off: subgroups, dp4a or f16")
      ->allow_extra_args(false)
      ->check(CLI::IsMember({"subgroups", "dp4a", "f16"}));
  app.add_option("--kv", kv, "Precision of the KV cache")
      ->check(CLI::IsMember({"f16", "f32"}))
      ->capture_default_str();
  app.add_option("--activations", activations,
                 "What products read of rows: f32, or int8 in blocks of 32, which is faster on "
                 "GPUs and rounds")
      ->check(CLI::IsMember({"f32", "int8"}))
      ->capture_default_str();
  app.add_option("--context", context, "Positions of the KV cache (default: the artifact's bound)")
      ->check(CLI::Range(uint32_t{1}, UINT32_MAX));
  app.add_option("--input-bound", input_bound,
                 "Rows of one prefill chunk (default: the artifact's bound)")
      ->check(CLI::Range(uint32_t{1}, UINT32_MAX));
  app.add_option("--drafts", drafts,
                 "Tokens that the assistant drafts in a round (default: 2, where there is one); 0 "
                 "does not load it")
      ->check(CLI::Range(0, 2));
  app.add_option("--rounds-in-flight", rounds_in_flight,
                 "Decode rounds submitted ahead of their readback")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app.add_flag("--pass-per-dispatch", pass_per_dispatch,
               "One compute pass for each dispatch: the same results, slower");
  app.add_option("--tuning", tuning,
                 "auto: matrix products run as was measured once on this GPU; off: by rules")
      ->check(CLI::IsMember({"auto", "off"}))
      ->capture_default_str();
}

EngineOptions EngineFlags::options() const {
  return {.place = device == "cpu" ? Place::cpu : Place::gpu,
          .adapter = adapter,
          .disabled_tiers = disabled_tiers,
          .context = context,
          .input_bound = input_bound,
          .kv = kv == "f32" ? KvPrecision::f32 : KvPrecision::f16,
          .activations = activations == "int8" ? Activations::int8 : Activations::f32,
          .assistant = assistant,
          .require_verified = require_verified,
          .sources = sources,
          .drafts = drafts,
          .rounds_in_flight = rounds_in_flight,
          .pass_per_dispatch = pass_per_dispatch,
          .tuning_folder = tuning == "off" ? std::string() : tuning_folder(),
          .on_note = [](std::string_view line) { fmt::print(stderr, "{}\n", printable(line)); },
          .on_load = progress_bar("loading")};
}

}  // namespace tandem::cli
