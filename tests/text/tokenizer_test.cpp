// The tokenizer's own promises; that it equals Hugging Face's is in golden_test.cpp.
#include "text/tokenizer.h"

#include <gtest/gtest.h>

#include "text/tokenizers.h"

namespace tandem::text {
namespace {

using Ids = std::vector<uint32_t>;

const Tokenizer& tiny() {
  static const Tokenizer tokenizer = test::compile_and_load(test::tiny_json().dump());
  return tokenizer;
}

TEST(Tokenizer, EncodesByHand) {
  struct Case {
    const char* text;
    const char* pieces;
  };
  for (const auto& [text, expected] : {Case{"", ""},
                                       {"abab", "abab"},
                                       {"ab ab", "ab| ab"},
                                       {"ababab", "abab|ab"},
                                       {"c d", "c |d"},
                                       {"c ab", "c| ab"},  // ' '+ab is before c+' '
                                       {"ab\u2581ab", "ab| ab"},
                                       {"axb", "a|x|b"},
                                       {"<tab>ab<tab>", "<tab>|ab|<tab>"}}) {
    EXPECT_EQ(test::pieces(tiny(), text), expected) << text;
  }
}

TEST(Tokenizer, ACharacterThatIsNoTokenBecomesItsBytes) {
  const Ids ids = tiny().encode("aéa").value();
  ASSERT_EQ(ids.size(), 4u);
  EXPECT_EQ(tiny().piece(ids[1]), "\xC3");
  EXPECT_EQ(tiny().piece(ids[2]), "\xA9");
  EXPECT_EQ(tiny().decode(ids).value(), "aéa");
}

TEST(Tokenizer, SpecialTokensAreParsedOnlyWhenAsked) {
  const std::string text = "<bos>ab<|turn><tab>";
  EXPECT_EQ(test::pieces(tiny(), text, {.parse_special = true}), "<bos>|ab|<|turn>|<tab>");
  const Ids plain = tiny().encode(text).value();
  for (const char* special : {"<pad>", "<bos>", "<|turn>", "<turn|>"}) {
    const uint32_t id = tiny().added_token(special)->id;
    EXPECT_EQ(std::count(plain.begin(), plain.end(), id), 0) << special;
  }
  EXPECT_EQ(tiny().decode(plain).value(), text);
  EXPECT_EQ(plain.back(), tiny().added_token("<tab>")->id);
}

TEST(Tokenizer, BosStandsInFrontWhenAsked) {
  const Ids expected = {tiny().bos(), tiny().encode("ab").value()[0]};
  EXPECT_EQ(tiny().encode("ab", {.add_bos = true}).value(), expected);
  EXPECT_EQ(tiny().encode("", {.add_bos = true}).value(), Ids{tiny().bos()});
}

TEST(Tokenizer, APromptHasOneBosWhetherItSpellsItOrNot) {
  const Ids expected = {tiny().bos(), tiny().encode("ab").value()[0]};
  EXPECT_EQ(tiny().encode_prompt("ab").value(), expected);
  EXPECT_EQ(tiny().encode_prompt("<bos>ab").value(), expected);
  EXPECT_EQ(tiny().encode_prompt("").value(), Ids{tiny().bos()});
}

TEST(Tokenizer, FindsTheLongestAddedToken) {
  nlohmann::json json = test::tiny_json();
  for (const char* content : {"aa", "aaa", "aab"}) {
    nlohmann::json added = json["added_tokens"].back();
    added["content"] = content;
    added["id"] = json["model"]["vocab"].size();
    json["model"]["vocab"][content] = added["id"];
    json["added_tokens"].push_back(added);
  }
  const Tokenizer tokenizer = test::compile_and_load(json.dump());
  EXPECT_EQ(test::pieces(tokenizer, "aaaaab"), "aaa|aab");
  EXPECT_EQ(test::pieces(tokenizer, "aaab"), "aaa|b");
  EXPECT_EQ(test::pieces(tokenizer, "a"), "a");
}

TEST(Tokenizer, AnAddedTokenMayBeOutsideTheVocabulary) {
  nlohmann::json json = test::tiny_json();
  nlohmann::json added = json["added_tokens"].back();
  const uint32_t id = static_cast<uint32_t>(json["model"]["vocab"].size());
  added["content"] = "<new>";
  added["id"] = id;
  json["added_tokens"].push_back(added);
  const Tokenizer tokenizer = test::compile_and_load(json.dump());
  EXPECT_EQ(tokenizer.size(), id + 1);
  EXPECT_EQ(tokenizer.encode("<new>").value(), Ids{id});
  EXPECT_EQ(tokenizer.piece(id), "<new>");
}

TEST(Tokenizer, RefusesTextThatIsNotUtf8) {
  const auto ids = tiny().encode("ab\xFF");
  ASSERT_FALSE(ids);
  EXPECT_EQ(ids.error().code, ErrorCode::malformed_text);
  EXPECT_NE(ids.error().message.find("0xff at offset 2"), std::string::npos) << ids.error().message;
  EXPECT_FALSE(tiny().encode("\xE6\x97"));
  EXPECT_FALSE(tiny().encode_prompt("\x80"));
}

TEST(Tokenizer, RefusesIdsThatAreNoTokens) {
  const Ids ids = {0, tiny().size()};
  const auto text = tiny().decode(ids);
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().code, ErrorCode::malformed_text);
  EXPECT_EQ(tiny().piece(tiny().size()), "");
}

TEST(Tokenizer, KnowsAddedTokensByTheirWholeSpelling) {
  ASSERT_TRUE(tiny().added_token("<|turn>"));
  EXPECT_EQ(tiny().added_token("<|turn>")->id, 2u);
  EXPECT_TRUE(tiny().added_token("<|turn>")->special);
  EXPECT_FALSE(tiny().added_token("<tab>")->special);
  for (const char* other : {"", "<", "<|turn", "<|turn>x", "ab", "<0x41>"}) {
    EXPECT_FALSE(tiny().added_token(other)) << other;
  }
}

TEST(Tokenizer, RemembersItsSource) {
  const std::string json = test::tiny_json().dump();
  EXPECT_EQ(test::compile_and_load(json).source(), sha256(json));
}

// In a stream, whole characters are kept where Hugging Face's decoder, which sees the whole run of
// bytes, gives up all of it; and the end cuts a character to one U+FFFD, not to one for each byte.
TEST(Tokenizer, DecodesBrokenBytesAsAStream) {
  const auto byte = [](uint8_t value) { return 5u + value; };  // as tiny_json numbers them
  ASSERT_EQ(tiny().piece(byte(0xC3)), "\xC3");
  EXPECT_EQ(tiny().decode(Ids{byte(0xC3), byte(0xA9), byte(0xFF)}).value(), "é\uFFFD");
  EXPECT_EQ(tiny().decode(Ids{byte(0xE6), byte(0x97)}).value(), "\uFFFD");
  EXPECT_EQ(tiny().decode(Ids{byte(0xE6), byte(0x97), 0}).value(), "\uFFFD\uFFFD<pad>");
}

}  // namespace
}  // namespace tandem::text
