// The options of every command that opens an engine.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tandem/engine.h"

namespace tandem::cli {

struct EngineFlags {
  std::string artifact;
  std::string device = "gpu";
  std::string adapter;
  std::vector<std::string> disabled_tiers;
  std::string kv = "f16";
  std::optional<uint32_t> context;
  std::optional<uint32_t> input_bound;
  uint32_t rounds_in_flight = 4;
  bool pass_per_dispatch = false;

  void add(CLI::App& app);
  EngineOptions options() const;
};

// Draws a bar on standard error if that is a terminal: "loading 45 %".
std::function<void(uint64_t done, uint64_t total)> progress_bar(std::string_view what);

// A file's size for people: "8.2 MB".
std::string megabytes(uint64_t bytes);

// "artifact, adapter (software), ..." for the statistics line.
std::string describe(const EngineInfo& info);

}  // namespace tandem::cli
