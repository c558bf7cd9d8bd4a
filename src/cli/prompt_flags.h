// The three ways to give a prompt: raw text, one chat message, or token ids.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tandem/engine.h"

namespace tandem::cli {

struct PromptFlags {
  std::optional<std::string> text;
  std::optional<std::string> chat;
  std::vector<uint32_t> ids;

  void add(CLI::App& app);
  Result<std::vector<uint32_t>> encode(const Engine& engine) const;
};

}  // namespace tandem::cli
