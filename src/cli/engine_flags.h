// The options of every command that opens an artifact, or an engine.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tandem/engine.h"

namespace tandem::cli {

// Which artifact, and whether its sources must be known.
struct ArtifactFlags {
  std::string artifact;
  std::string assistant;
  std::string sources;
  bool require_verified = false;

  void add(CLI::App& app);
};

struct EngineFlags : ArtifactFlags {
  std::string device = "gpu";
  std::string adapter;
  std::vector<std::string> disabled_tiers;
  std::string kv = "f16";
  std::string activations = "f32";
  std::optional<uint32_t> context;
  std::optional<uint32_t> input_bound;
  std::optional<uint32_t> drafts;
  uint32_t rounds_in_flight = 4;
  bool pass_per_dispatch = false;
  std::string tuning = "auto";

  void add(CLI::App& app);
  EngineOptions options() const;
};

}  // namespace tandem::cli
