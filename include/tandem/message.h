// One turn of a conversation.
#pragma once

#include <string>

#pragma GCC visibility push(default)
namespace tandem {

struct Message {
  std::string role;     // "system", "user", or "model" (which "assistant" means too)
  std::string content;  // plain text: a control token that it spells stays text
};

}  // namespace tandem
#pragma GCC visibility pop
