// What an artifact says of text: its tokenizer, its chat template, the ids that end an answer.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "artifact/artifact.h"
#include "tandem/message.h"
#include "text/chat.h"
#include "text/tokenizer.h"

namespace tandem::engine {

class Prompts {
 public:
  static Result<Prompts> open(const artifact::Artifact& artifact);

  const text::Tokenizer& tokenizer() const { return tokenizer_; }
  // A raw prompt, as Engine::encode.
  Result<std::vector<uint32_t>> encode(std::string_view text) const;
  // A conversation, as Engine::encode_chat.
  Result<std::vector<uint32_t>> encode_chat(std::span<const Message> messages) const;

 private:
  Prompts(text::Tokenizer tokenizer, Result<text::Chat> chat)
      : tokenizer_(std::move(tokenizer)), chat_(std::move(chat)) {}

  text::Tokenizer tokenizer_;
  Result<text::Chat> chat_;  // or why there is none, for the caller who asks for it
};

// From its generation_config.json, or else from its config.
Result<std::vector<uint32_t>> stop_ids(const artifact::Artifact& artifact);

}  // namespace tandem::engine
