// Encoding and decoding over the loaded table.
#include "text/tokenizer.h"

#include "text/utf8.h"

namespace tandem::text {
namespace {

constexpr uint32_t separator_codepoint = 0x2581;

// The tokens of one character, by code point. Added tokens and bytes are not among them: the ones
// are found before, the others after this lookup.
std::vector<uint32_t> single_characters(const Table& table) {
  std::vector<bool> excluded(table.size());
  for (uint32_t id : table.byte_ids) excluded[id] = true;
  for (const AddedToken& token : table.added) excluded[token.id] = true;
  std::vector<uint32_t> ids;
  for (uint32_t id = 0; id < table.size(); ++id) {
    const std::string_view piece = table.piece(id);
    if (excluded[id] || piece.size() > 4) continue;
    const Character character = first_character(piece);
    if (character.bytes != piece.size()) continue;
    if (character.codepoint >= ids.size()) ids.resize(character.codepoint + 1, PairMap::missing);
    ids[character.codepoint] = id;
  }
  return ids;
}

}  // namespace

Result<Tokenizer> Tokenizer::load(std::span<const std::byte> bytes) {
  TRY_ASSIGN(Table table, read_table(bytes));
  TRY_ASSIGN(Merges merges, Merges::make(table));
  Tokenizer tokenizer(std::move(table), std::move(merges));
  if (tokenizer.character_id(' ') == PairMap::missing) {
    return fail(ErrorCode::malformed_artifact, "tokenizer table: no token for a space");
  }
  return tokenizer;
}

Tokenizer::Tokenizer(Table table, Merges merges)
    : table_(std::move(table)),
      merges_(std::move(merges)),
      added_(table_.added),
      character_ids_(single_characters(table_)) {}

Result<std::vector<uint32_t>> Tokenizer::encode(std::string_view text, EncodeOptions options,
                                                uint64_t* steps) const {
  if (const size_t valid = valid_utf8(text); valid != text.size()) {
    return fail(ErrorCode::malformed_text,
                "text to encode: byte {:#04x} at offset {} is not UTF-8; convert the text first",
                static_cast<uint8_t>(text[valid]), valid);
  }
  if (text.size() > INT32_MAX) {
    return fail(ErrorCode::malformed_text, "text to encode: {} bytes, at most {} are possible",
                text.size(), INT32_MAX);
  }
  std::vector<uint32_t> ids;
  if (options.add_bos) ids.push_back(bos());
  Merger merger(merges_);
  size_t begin = 0;  // of the text that is not encoded yet
  for (auto match = added_.find(text, 0); match;
       match = added_.find(text, match->begin + match->bytes)) {
    const AddedToken& token = table_.added[match->index];
    if (token.special && !options.parse_special) continue;
    encode_plain(text.substr(begin, match->begin - begin), merger, ids);
    ids.push_back(token.id);
    begin = match->begin + match->bytes;
  }
  encode_plain(text.substr(begin), merger, ids);
  if (steps) *steps += merger.steps();
  return ids;
}

void Tokenizer::encode_plain(std::string_view text, Merger& merger,
                             std::vector<uint32_t>& ids) const {
  uint32_t previous = 0;
  for (size_t at = 0; at < text.size();) {
    const Character character = first_character(text.substr(at));
    const uint32_t codepoint =
        character.codepoint == separator_codepoint ? ' ' : character.codepoint;
    const uint32_t id = character_id(codepoint);
    if (id == PairMap::missing) {
      merger.flush(ids);
      for (char byte : text.substr(at, character.bytes)) {
        ids.push_back(table_.byte_ids[static_cast<uint8_t>(byte)]);
      }
    } else {
      if (!merges_.may_join(previous, codepoint)) merger.flush(ids);
      merger.add(id);
    }
    previous = codepoint;
    at += character.bytes;
  }
  merger.flush(ids);
}

Result<std::vector<uint32_t>> Tokenizer::encode_prompt(std::string_view text) const {
  TRY_ASSIGN(std::vector<uint32_t> ids, encode(text, {.add_bos = true, .parse_special = true}));
  if (ids.size() > 1 && ids[1] == bos()) ids.erase(ids.begin());
  return ids;
}

Result<std::string> Tokenizer::decode(std::span<const uint32_t> ids) const {
  Utf8Stream stream;
  std::string text;
  for (uint32_t id : ids) {
    if (id >= size()) {
      return fail(ErrorCode::malformed_text, "token {} to decode: the tokenizer has {}", id,
                  size());
    }
    text += stream.push(table_.piece(id));
  }
  return text + stream.finish();
}

std::string_view Tokenizer::piece(uint32_t id) const {
  return id < size() ? table_.piece(id) : std::string_view();
}

const AddedToken* Tokenizer::added_token(std::string_view content) const {
  const auto index = added_.exact(content);
  return index ? &table_.added[*index] : nullptr;
}

}  // namespace tandem::text
