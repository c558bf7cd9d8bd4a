// Error codes have names and meanings of their own; TRY hands errors on.
#include "base/error.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

namespace tandem {
namespace {

TEST(Error, EveryCodeHasItsOwnNameAndMeaning) {
  std::set<std::string_view> names, meanings;
  constexpr int count = static_cast<int>(ErrorCode::internal) + 1;
  for (int i = 0; i < count; ++i) {
    names.insert(name(ErrorCode(i)));
    meanings.insert(meaning(ErrorCode(i)));
  }
  EXPECT_EQ(names.size(), size_t{count});
  EXPECT_EQ(meanings.size(), size_t{count});
}

Result<int> half_of(int value) {
  if (value % 2 != 0) return fail(ErrorCode::bad_value, "{} is odd", value);
  return value / 2;
}
Result<std::unique_ptr<int>> quarter_of(int value) {
  TRY_ASSIGN(const int half, half_of(value));
  TRY(half_of(half));
  TRY_ASSIGN(auto quarter, half_of(half));
  return std::make_unique<int>(quarter);
}

TEST(Error, TryHandsOnTheFirstErrorAndOtherwiseTheValue) {
  EXPECT_EQ(**quarter_of(12), 3);
  const auto odd = quarter_of(6);
  ASSERT_FALSE(odd);
  EXPECT_EQ(odd.error().code, ErrorCode::bad_value);
  EXPECT_EQ(odd.error().message, "3 is odd");
}

TEST(Error, MessagesShowControlCharactersAsEscapes) {
  struct Case {
    std::string_view text, shown;
  };
  using namespace std::literals;
  for (const Case& c :
       {Case{"plain é 😀 \\", "plain é 😀 \\"}, Case{"a\nb\t", "a\\x0ab\\x09"},
        Case{"\x1b[2J\x7f", "\\x1b[2J\\x7f"}, Case{"\0"sv, "\\x00"},
        Case{"\xc2\x9b"
             "31m \xc2\xa0",
             "\\u009b31m \xc2\xa0"},
        Case{"\u061ca\u200e\u200f", "\\u061ca\\u200e\\u200f"},
        Case{"\u2027\u2028\u2029", "\u2027\\u2028\\u2029"},
        Case{"\u202a\u202e\u202f", "\\u202a\\u202e\u202f"},
        Case{"\u2065\u2066\u2069\u206a", "\u2065\\u2066\\u2069\u206a"}, Case{"\xc2", "\\xc2"},
        Case{"\x9b"
             "31m",
             "\\x9b31m"},
        Case{"\xe0\x82\x9b", "\\xe0\\x82\\x9b"}, Case{"\xf0\x9f\x98", "\\xf0\\x9f\\x98"}}) {
    EXPECT_EQ(printable(c.text), c.shown);
    EXPECT_EQ(printable(printable(c.text)), c.shown);
    EXPECT_EQ(fail(ErrorCode::io, "{}", c.text).value().message, c.shown);
  }
}

TEST(Error, ListsOfNamesAreBounded) {
  std::vector<std::string> names;
  EXPECT_EQ(first_few(names), "none");
  names = {"a", "b", "c", "d", "e"};
  EXPECT_EQ(first_few(names), "a, b, c, d, e");
  names.insert(names.end(), 1000, "f");
  EXPECT_EQ(first_few(names), "a, b, c, d, e and 1000 more");
}

}  // namespace
}  // namespace tandem
