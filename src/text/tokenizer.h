// The tokenizer: text to token ids and back, as Hugging Face's tokenizers does it for Gemma.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "text/added_tokens.h"
#include "text/bpe.h"
#include "text/table.h"

namespace tandem::text {

// Compiles the text of a tokenizer.json to the table that Tokenizer::load reads. `where` names the
// file in messages. What would need another algorithm is refused by its name.
Result<std::vector<std::byte>> compile_tokenizer(std::string_view json, std::string_view where);

struct EncodeOptions {
  bool add_bos = false;
  // Whether the spelling of a special (control) token becomes that token. Without it no text gives
  // a special token.
  bool parse_special = false;
};

// Immutable, so any number of threads may use one.
class Tokenizer {
 public:
  static Result<Tokenizer> load(std::span<const std::byte> table);

  // Refuses text that is not UTF-8. `steps`, where given, grows by the work done, in units that do
  // not depend on the machine.
  Result<std::vector<uint32_t>> encode(std::string_view text, EncodeOptions options = {},
                                       uint64_t* steps = nullptr) const;
  // A raw prompt: special tokens are parsed, and one BOS is in front whether or not the text spells
  // it.
  Result<std::vector<uint32_t>> encode_prompt(std::string_view text) const;

  // What Utf8Stream makes of the ids' pieces. Refuses an id that is not a token.
  Result<std::string> decode(std::span<const uint32_t> ids) const;
  // The bytes of one token, which need not be whole characters; none if the id is not a token.
  std::string_view piece(uint32_t id) const;

  uint32_t size() const { return table_.size(); }
  uint32_t bos() const { return table_.bos; }
  // The added token that is spelled so, or null.
  const AddedToken* added_token(std::string_view content) const;
  // The sha256 of the tokenizer.json that the table was compiled from.
  const Digest& source() const { return table_.source; }

 private:
  Tokenizer(Table table, Merges merges);

  // Text between added tokens.
  void encode_plain(std::string_view text, Merger& merger, std::vector<uint32_t>& ids) const;
  // The token that is this one character, or PairMap::missing.
  uint32_t character_id(uint32_t codepoint) const {
    return codepoint < character_ids_.size() ? character_ids_[codepoint] : PairMap::missing;
  }

  Table table_;
  Merges merges_;
  AddedTokens added_;
  std::vector<uint32_t> character_ids_;  // by code point
};

}  // namespace tandem::text
