// UTF-8: reading one character, and the streaming decoder that turns token pieces into whole
// characters.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tandem::text {

struct Character {
  enum class State {
    whole,  // a character of `bytes` bytes
    cut,    // the text ends inside what may become a character
    bad,    // the first byte does not begin a character
  };
  State state;
  uint32_t codepoint;
  uint32_t bytes;
};

// Reads the first character of a text that is not empty. Overlong forms, surrogates and values over
// U+10FFFF are bad.
Character first_character(std::string_view text);

// The offset of the first byte that is not part of a whole character; the size, if there is none.
size_t valid_utf8(std::string_view text);

// Takes the bytes of tokens one after the other and gives out valid UTF-8. A character that is
// split over tokens comes out whole, with its last byte. Bytes that cannot become a character give
// one U+FFFD each, as in Hugging Face's ByteFallback decoder; a character that the end of the text
// cuts gives a single one.
class Utf8Stream {
 public:
  std::string push(std::string_view piece);
  // The end of the text: what is left, and the stream is as new.
  std::string finish();

 private:
  std::string pending_;  // the beginning of one character: at most 3 bytes
};

}  // namespace tandem::text
