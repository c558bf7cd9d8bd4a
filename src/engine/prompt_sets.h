// The prompts that MTP is measured on. Acceptance depends on what is written, so each kind of text
// is a set of its own.
#pragma once

#include <span>
#include <string_view>

namespace tandem::engine {

struct PromptSet {
  std::string_view name;
  bool chat;  // each is a user's message; else raw text that goes on past the stop ids
  std::span<const std::string_view> prompts;
};

// Questions with short answers, profiles with long ones, free text.
std::span<const PromptSet> prompt_sets();

}  // namespace tandem::engine
