// How answers are generated: their length, their end, and how their tokens are chosen.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tandem/engine.h"

namespace tandem::cli {

struct GenerateFlags {
  GenerateOptions generate;
  std::optional<float> temperature, top_p, min_p, repetition_penalty;
  std::optional<uint32_t> top_k, penalty_window;
  std::optional<uint64_t> seed;
  std::string mtp = "auto";

  void add(CLI::App& app);

  // The flags over the artifact's defaults; without --seed a random one. Refuses flags that greedy
  // answers do not look at, and --mtp where no assistant was loaded.
  Result<GenerateOptions> options(const EngineInfo& info) const;
};

// " (temperature 0.7, seed 42)"; nothing for greedy answers.
std::string describe(const SampleOptions& sampling);

}  // namespace tandem::cli
