// Reading and streaming of UTF-8, by the table of well-formed byte sequences in the Unicode
// standard.
#include "text/utf8.h"

#include <algorithm>

namespace tandem::text {
namespace {

constexpr std::string_view replacement = "\xEF\xBF\xBD";

struct Lead {
  uint32_t bytes;        // of the whole character; 0: not a first byte
  uint8_t second_first;  // the range of the second byte
  uint8_t second_last;
};

Lead lead(uint8_t byte) {
  if (byte < 0x80) return {1, 0, 0};
  if (byte < 0xC2) return {0, 0, 0};
  if (byte < 0xE0) return {2, 0x80, 0xBF};
  if (byte == 0xE0) return {3, 0xA0, 0xBF};
  if (byte == 0xED) return {3, 0x80, 0x9F};
  if (byte < 0xF0) return {3, 0x80, 0xBF};
  if (byte == 0xF0) return {4, 0x90, 0xBF};
  if (byte < 0xF4) return {4, 0x80, 0xBF};
  if (byte == 0xF4) return {4, 0x80, 0x8F};
  return {0, 0, 0};
}

}  // namespace

Character first_character(std::string_view text) {
  const auto first = static_cast<uint8_t>(text[0]);
  if (first < 0x80) return {Character::State::whole, first, 1};
  const auto [bytes, second_first, second_last] = lead(first);
  if (bytes == 0) return {Character::State::bad, 0, 0};
  uint32_t codepoint = first & (0x7Fu >> bytes);
  for (uint32_t i = 1; i < bytes; ++i) {
    if (i == text.size()) return {Character::State::cut, 0, 0};
    const auto byte = static_cast<uint8_t>(text[i]);
    const uint8_t low = i == 1 ? second_first : 0x80;
    const uint8_t high = i == 1 ? second_last : 0xBF;
    if (byte < low || byte > high) return {Character::State::bad, 0, 0};
    codepoint = codepoint << 6 | (byte & 0x3Fu);
  }
  return {Character::State::whole, codepoint, bytes};
}

size_t valid_utf8(std::string_view text) {
  size_t offset = 0;
  while (offset < text.size()) {
    const Character character = first_character(text.substr(offset));
    if (character.state != Character::State::whole) break;
    offset += character.bytes;
  }
  return offset;
}

std::string Utf8Stream::push(std::string_view piece) {
  pending_ += piece;
  const std::string_view bytes = pending_;
  std::string whole;
  size_t offset = 0;
  while (offset < bytes.size()) {
    const Character character = first_character(bytes.substr(offset));
    if (character.state == Character::State::cut) break;
    if (character.state == Character::State::whole) {
      whole += bytes.substr(offset, character.bytes);
      offset += character.bytes;
    } else {
      whole += replacement;
      offset += 1;
    }
  }
  pending_.erase(0, offset);
  return whole;
}

std::string Utf8Stream::finish() {
  const bool cut = !pending_.empty();
  pending_.clear();
  return std::string(cut ? replacement : std::string_view());
}

}  // namespace tandem::text
