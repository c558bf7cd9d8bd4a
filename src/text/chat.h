// Chat turns: messages to token ids, as the checkpoint's chat template would render them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/sha256.h"
#include "tandem/message.h"
#include "text/tokenizer.h"

namespace tandem::text {

struct ChatRule;

// Templates are programs; Tandem runs none. It knows some by their digest, and for each of these
// the rule that gives the same ids.
class Chat {
 public:
  // Refuses a template that is not known. The tokenizer must hold the turns' control tokens; use
  // the same one in the calls below.
  static Result<Chat> open(const Digest& chat_template, const Tokenizer& tokenizer);

  // A whole conversation, with BOS at index 0 and nowhere else, and the beginning of the model's
  // answer at its end.
  Result<std::vector<uint32_t>> begin(const Tokenizer& tokenizer,
                                      std::span<const Message> messages) const;

  // What follows an answer of the model, up to the beginning of its next answer. `closed`: the
  // answer ended with the token that closes a turn.
  Result<std::vector<uint32_t>> next(const Tokenizer& tokenizer, std::span<const Message> messages,
                                     bool closed) const;

  uint32_t close_id() const { return close_; }

 private:
  Chat(const ChatRule& rule, uint32_t open, uint32_t close)
      : rule_(&rule), open_(open), close_(close) {}

  Result<void> append_turns(const Tokenizer& tokenizer, std::span<const Message> messages,
                            std::vector<uint32_t>& ids) const;

  const ChatRule* rule_;
  uint32_t open_;
  uint32_t close_;
};

}  // namespace tandem::text
