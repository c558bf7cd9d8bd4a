// The three ways to give a prompt: raw text, one chat message, or token ids.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tandem/error.h"
#include "tandem/message.h"

namespace tandem::cli {

struct PromptFlags {
  std::optional<std::string> text;
  std::optional<std::string> chat;
  std::vector<uint32_t> ids;

  void add(CLI::App& app);

  // With an Engine, or engine::Prompts.
  template <class Encoder>
  Result<std::vector<uint32_t>> encode(const Encoder& encoder) const {
    if (text) return encoder.encode(*text);
    if (!chat) return ids;
    const Message message{"user", *chat};
    return encoder.encode_chat({&message, 1});
  }
};

}  // namespace tandem::cli
