// What an artifact says of text: its tokenizer, its chat template, how answers are generated.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "artifact/artifact.h"
#include "tandem/message.h"
#include "text/chat.h"
#include "text/generation_config.h"
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
  // A conversation that goes on after `ids`, as Session::next_prompt.
  Result<std::vector<uint32_t>> next(std::span<const uint32_t> ids,
                                     std::span<const uint32_t> stop_ids,
                                     std::span<const Message> messages) const;

 private:
  Prompts(text::Tokenizer tokenizer, Result<text::Chat> chat)
      : tokenizer_(std::move(tokenizer)), chat_(std::move(chat)) {}

  text::Tokenizer tokenizer_;
  Result<text::Chat> chat_;  // or why there is none, for the caller who asks for it
};

// What an engine keeps of an artifact's texts.
struct Texts {
  Prompts prompts;
  text::GenerationConfig defaults;
};
Result<Texts> open_texts(const artifact::Artifact& artifact);

// Of its generation_config.json; without one, greedy up to the ids that its config ends with.
Result<text::GenerationConfig> generation_config(const artifact::Artifact& artifact);

}  // namespace tandem::engine
