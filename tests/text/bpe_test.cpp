// The merge loop against one that follows the definition word by word.
#include "text/bpe.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "text/tokenizers.h"

namespace tandem::text {
namespace {

// Random merges of the letters a to d in random order, so that a merge may make a pair of higher
// precedence than its own.
std::vector<std::pair<std::string, std::string>> random_merges(std::mt19937& random) {
  std::vector<std::string> tokens = {"a", "b", "c", "d"};
  std::set<std::pair<std::string, std::string>> merges;
  while (merges.size() < 24) {
    const std::string left = tokens[random() % tokens.size()];
    const std::string right = tokens[random() % tokens.size()];
    if (left.size() + right.size() > 9 || !merges.emplace(left, right).second) continue;
    if (std::find(tokens.begin(), tokens.end(), left + right) == tokens.end()) {
      tokens.push_back(left + right);
    }
  }
  std::vector<std::pair<std::string, std::string>> result(merges.begin(), merges.end());
  std::shuffle(result.begin(), result.end(), random);
  return result;
}

std::string merge_by_definition(const std::vector<std::pair<std::string, std::string>>& merges,
                                const std::string& text) {
  std::vector<std::string> symbols;
  for (char letter : text) symbols.emplace_back(1, letter);
  for (;;) {
    size_t best_rank = merges.size();
    size_t best = 0;
    for (size_t at = 0; at + 1 < symbols.size(); ++at) {
      const auto pair = std::pair(symbols[at], symbols[at + 1]);
      const size_t rank = std::find(merges.begin(), merges.end(), pair) - merges.begin();
      if (rank < best_rank) best_rank = rank, best = at;
    }
    if (best_rank == merges.size()) break;
    symbols[best] += symbols[best + 1];
    symbols.erase(symbols.begin() + best + 1);
  }
  std::string result;
  for (const std::string& symbol : symbols) result += (result.empty() ? "" : "|") + symbol;
  return result;
}

TEST(Merger, FollowsTheDefinition) {
  std::mt19937 random(1);
  for (int round = 0; round < 60; ++round) {
    const auto merges = random_merges(random);
    nlohmann::json json = test::tiny_json({});
    nlohmann::json& model = json["model"];
    for (const auto& [left, right] : merges) {
      if (!model["vocab"].contains(left + right)) {
        model["vocab"][left + right] = model["vocab"].size();
      }
      model["merges"].push_back({left, right});
    }
    const Tokenizer tokenizer = test::compile_and_load(json.dump());
    for (int i = 0; i < 40; ++i) {
      std::string text(1 + random() % 60, ' ');
      const unsigned letters = 1 + random() % 4;
      for (char& letter : text) letter = static_cast<char>('a' + random() % letters);
      ASSERT_EQ(test::pieces(tokenizer, text), merge_by_definition(merges, text))
          << "round " << round << ", '" << text << "'";
    }
  }
}

TEST(Merger, TheLeftmostOfEqualPairsMergesFirst) {
  const Tokenizer tokenizer = test::compile_and_load(test::tiny_json({{"a", "a"}}).dump());
  EXPECT_EQ(test::pieces(tokenizer, "aaaaa"), "aa|aa|a");
}

TEST(Merger, WorkGrowsWithTheTextNotWithItsSquare) {
  struct Case {
    const char* name;
    const char* unit;
  };
  for (const auto& [name, unit] : {Case{"spaces", " "},
                                   {"newlines", "\n"},
                                   {"one letter", "a"},
                                   {"the", "the"},
                                   {"alphabet", "abcdefghijklmnopqrstuvwxyz"},
                                   {"words", "The capital of France is Paris. "},
                                   {"emoji", "👩‍👩‍👧‍👦"}}) {
    std::string text;
    while (text.size() < 1'000'000) text += unit;
    uint64_t once = 0;
    uint64_t twice = 0;
    const auto ids = test::atlas().encode(text, {}, &once);
    const auto more = test::atlas().encode(text + text, {}, &twice);
    ASSERT_TRUE(ids && more) << name;
    EXPECT_GE(more->size() + 1, 2 * ids->size()) << name;
    EXPECT_LE(once, 8 * text.size()) << name;
    EXPECT_LE(twice, 2 * once + 1000) << name;
  }
}

TEST(Merges, ARepeatedPairIsRefused) {
  nlohmann::json json = test::tiny_json();
  json["model"]["merges"].push_back({"a", "b"});
  const auto table = compile_tokenizer(json.dump(), "tokenizer.json");
  ASSERT_FALSE(table);
  EXPECT_NE(table.error().message.find("'a' and 'b' again"), std::string::npos)
      << table.error().message;
}

}  // namespace
}  // namespace tandem::text
