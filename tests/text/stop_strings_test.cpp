// Stop strings over pieces of every size.
#include "text/stop_strings.h"

#include <gtest/gtest.h>

#include "support/refusal.h"

namespace tandem::text {
namespace {

struct Case {
  std::vector<std::string> strings;
  std::string text;
  std::string before;  // what comes out
  bool found;
};

const Case cases[] = {
    {{}, "abc", "abc", false},
    {{"b"}, "abc", "a", true},
    {{"a"}, "abc", "", true},
    {{"c"}, "abc", "ab", true},
    {{"abc"}, "abc", "", true},
    {{"abcd"}, "abc", "abc", false},
    {{"aab"}, "aaab", "a", true},
    {{"abab"}, "abaabab", "aba", true},
    {{"bc", "abc"}, "xabc", "x", true},     // of two that end together, the longest
    {{"abcd", "bc"}, "xabcd", "xa", true},  // the one that ends first
    {{"\n\n"}, "a\nb\n\nc", "a\nb", true},
    {{"\n\n", "END"}, "a\nEN\n", "a\nEN\n", false},
    {{"é"}, "caf\xC3\xA9!", "caf", true},
    {{"\xC3\xA9x"}, "\xC3\xA9\xC3\xA9x", "\xC3\xA9", true},
};

// In pieces of so many bytes.
void expect_cut(const Case& c, size_t bytes) {
  StopStrings stops = StopStrings::make(c.strings).value();
  std::string out;
  for (size_t at = 0; at < c.text.size(); at += bytes) {
    out += stops.push(std::string_view(c.text).substr(at, bytes));
    EXPECT_TRUE(c.before.starts_with(out)) << "nothing is given out that is taken back later";
  }
  EXPECT_EQ(stops.found(), c.found);
  out += stops.finish();
  EXPECT_EQ(out, c.before);
}

TEST(StopStrings, CutTheTextWhereverThePiecesEnd) {
  for (const Case& c : cases) {
    for (size_t bytes = 1; bytes <= c.text.size(); ++bytes) {
      SCOPED_TRACE(c.text + " in pieces of " + std::to_string(bytes));
      expect_cut(c, bytes);
    }
  }
}

TEST(StopStrings, HoldBackNoMoreThanMayBecomeOne) {
  StopStrings stops = StopStrings::make(std::vector<std::string>{"STOP"}).value();
  EXPECT_EQ(stops.push("go S"), "go ");
  EXPECT_EQ(stops.push("T"), "");
  EXPECT_EQ(stops.push("x"), "STx");
  EXPECT_EQ(stops.push("STO"), "");
  EXPECT_EQ(stops.push("P more"), "");
  EXPECT_TRUE(stops.found());
  EXPECT_EQ(stops.push("text"), "");
  EXPECT_EQ(stops.finish(), "");
}

TEST(StopStrings, RefuseWhatCannotBeFound) {
  const auto make = [](std::vector<std::string> strings) { return StopStrings::make(strings); };
  EXPECT_TRUE(test::refused(make({"a", ""}), ErrorCode::invalid_argument, {"empty"}));
  EXPECT_TRUE(test::refused(make({"a\xC3"}), ErrorCode::malformed_text, {"byte 1"}));
  EXPECT_TRUE(make({"a", "a"}));
}

}  // namespace
}  // namespace tandem::text
