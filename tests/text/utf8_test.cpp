// Whole, split, cut and bad characters.
#include "text/utf8.h"

#include <gtest/gtest.h>

#include <vector>

namespace tandem::text {
namespace {

std::string stream(const std::vector<std::string_view>& pieces) {
  Utf8Stream decoder;
  std::string text;
  for (std::string_view piece : pieces) text += decoder.push(piece);
  return text + decoder.finish();
}

TEST(FirstCharacter, ReadsTheEdgesOfEachLength) {
  struct Case {
    std::string_view bytes;
    uint32_t codepoint;
  };
  for (const auto& [bytes, codepoint] : {Case{{"\0", 1}, 0},
                                         {"\x7F", 0x7F},
                                         {"\xC2\x80", 0x80},
                                         {"\xDF\xBF", 0x7FF},
                                         {"\xE0\xA0\x80", 0x800},
                                         {"\xED\x9F\xBF", 0xD7FF},
                                         {"\xEE\x80\x80", 0xE000},
                                         {"\xEF\xBF\xBF", 0xFFFF},
                                         {"\xF0\x90\x80\x80", 0x10000},
                                         {"\xF4\x8F\xBF\xBF", 0x10FFFF}}) {
    const Character character = first_character(std::string(bytes) + "x");
    EXPECT_EQ(character.state, Character::State::whole) << codepoint;
    EXPECT_EQ(character.codepoint, codepoint);
    EXPECT_EQ(character.bytes, bytes.size()) << codepoint;
    for (size_t cut = 1; cut < bytes.size(); ++cut) {
      EXPECT_EQ(first_character(bytes.substr(0, cut)).state, Character::State::cut) << codepoint;
      EXPECT_EQ(first_character(std::string(bytes.substr(0, cut)) + "x").state,
                Character::State::bad)
          << codepoint;
    }
  }
}

TEST(FirstCharacter, RefusesWhatIsNotUtf8) {
  for (std::string_view bytes : {
           "\x80", "\xBF", "\xC0\x80", "\xC1\xBF",                  // no first byte
           "\xE0\x9F\xBF", "\xF0\x8F\xBF\xBF",                      // overlong
           "\xED\xA0\x80", "\xED\xBF\xBF",                          // surrogates
           "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFE", "\xFF",  // too large
           "\xE2\x96\x41", "\xF0\x9F\x98\xC0", "\xC3\x28",          // broken off
       }) {
    EXPECT_EQ(first_character(bytes).state, Character::State::bad)
        << ::testing::PrintToString(std::string(bytes));
  }
}

TEST(ValidUtf8, EndsBeforeTheFirstByteThatIsNot) {
  EXPECT_EQ(valid_utf8(""), 0u);
  EXPECT_EQ(valid_utf8("aé日😀"), 10u);
  EXPECT_EQ(valid_utf8("aé\xFFz"), 3u);
  EXPECT_EQ(valid_utf8("aé\xE6\x97"), 3u);
}

TEST(Utf8Stream, ACharacterSplitOverPiecesComesOutWholeWithItsLastByte) {
  Utf8Stream decoder;
  EXPECT_EQ(decoder.push("a\xF0"), "a");
  EXPECT_EQ(decoder.push("\x9F"), "");
  EXPECT_EQ(decoder.push(""), "");
  EXPECT_EQ(decoder.push("\x98"), "");
  EXPECT_EQ(decoder.push("\x80z"), "😀z");
  EXPECT_EQ(decoder.finish(), "");
}

TEST(Utf8Stream, EveryWayToSplitGivesTheSameText) {
  const std::string text = "aé日😀\xFF\xE6\x97zÿ\xF0\x9F\x98";
  const std::string expected = "aé日😀\uFFFD\uFFFD\uFFFDzÿ\uFFFD";
  for (size_t first = 0; first <= text.size(); ++first) {
    for (size_t second = first; second <= text.size(); ++second) {
      const std::string_view all = text;
      EXPECT_EQ(
          stream({all.substr(0, first), all.substr(first, second - first), all.substr(second)}),
          expected)
          << first << ", " << second;
    }
  }
}

TEST(Utf8Stream, ACutCharacterIsOneReplacementAtTheEnd) {
  for (std::string_view cut : {"\xC3", "\xE6", "\xE6\x97", "\xF0", "\xF0\x9F", "\xF0\x9F\x98"}) {
    EXPECT_EQ(stream({"a", cut}), "a\uFFFD");
  }
}

TEST(Utf8Stream, EachBadByteIsOneReplacement) {
  EXPECT_EQ(stream({"\xFF"}), "\uFFFD");
  EXPECT_EQ(stream({"\x80", "\x80"}), "\uFFFD\uFFFD");
  EXPECT_EQ(stream({"\xE6\x97", "a"}), "\uFFFD\uFFFDa");
  EXPECT_EQ(stream({"\xF0\x9F", "\xF0\x9F\x98\x80"}), "\uFFFD\uFFFD😀");
  EXPECT_EQ(stream({"\xED\xA0\x80"}), "\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(stream({"\xC3", "\xC3", "\xA9"}), "\uFFFDé");
}

TEST(Utf8Stream, IsAsNewAfterItsEnd) {
  Utf8Stream decoder;
  decoder.push("\xE6");
  EXPECT_EQ(decoder.finish(), "\uFFFD");
  EXPECT_EQ(decoder.finish(), "");
  EXPECT_EQ(decoder.push("\x97z"), "\uFFFDz");
}

}  // namespace
}  // namespace tandem::text
