// Equality with Hugging Face: the cases of tests/golden/tokenizer.json, and the corpus that
// tools/golden_tokenizer.py made.
#include <gtest/gtest.h>

#include "text/chat.h"
#include "text/tokenizers.h"
#include "text/utf8.h"

namespace tandem::text {
namespace {

using Ids = std::vector<uint32_t>;

nlohmann::json golden(const std::string& name) {
  return nlohmann::json::parse(test::read_text(test::golden_folder + name));
}

std::string text_of(const nlohmann::json& entry) {
  std::string text;
  const std::string unit = entry["unit"];
  for (int i = entry["repeat"]; i > 0; --i) text += unit;
  return text;
}

// `expected` is a list, or the count and hash of a long one.
void expect_ids(const Ids& ids, const nlohmann::json& expected, const std::string& what) {
  if (expected.is_array()) {
    EXPECT_EQ(ids, expected.get<Ids>()) << what;
    return;
  }
  std::string bytes;
  for (uint32_t id : ids) {
    for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(id >> shift);
  }
  EXPECT_EQ(ids.size(), expected["count"].get<size_t>()) << what;
  EXPECT_EQ(sha256(bytes).hex(), expected["sha256"].get<std::string>()) << what;
}

void expect_corpus(const Tokenizer& tokenizer, const char* model) {
  const nlohmann::json corpus = golden("tokenizer_corpus.json");
  ASSERT_EQ(tokenizer.source().hex(), corpus["sha256"][model].get<std::string>());
  for (const auto& entry : corpus["cases"]) {
    const std::string what = entry["name"];
    const std::string text = text_of(entry);
    const nlohmann::json& expected = entry[model];
    const Ids parsed = tokenizer.encode(text, {.parse_special = true}).value();
    const Ids plain = tokenizer.encode(text).value();
    expect_ids(parsed, expected["parsed"], what);
    expect_ids(plain, expected.contains("plain") ? expected["plain"] : expected["parsed"], what);
    EXPECT_EQ(tokenizer.decode(parsed).value(), with_spaces(text)) << what;
    EXPECT_EQ(tokenizer.decode(plain).value(), with_spaces(text)) << what;
  }
  for (const auto& entry : corpus["decode"][model]) {
    EXPECT_EQ(tokenizer.decode(entry["ids"].get<Ids>()).value(), entry["text"].get<std::string>());
  }
}

TEST(Golden, TransformersCases) {
  const nlohmann::json cases = golden("tokenizer.json")["cases"];
  ASSERT_EQ(cases.size(), 20u);
  for (const auto& entry : cases) {
    const std::string text = entry["text"];
    const Ids ids = test::atlas().encode(text, {.parse_special = true}).value();
    EXPECT_EQ(ids, entry["ids"].get<Ids>()) << text;
    EXPECT_EQ(test::atlas().encode(text, {.add_bos = true, .parse_special = true}).value(),
              entry["ids_with_special"].get<Ids>())
        << text;
    EXPECT_EQ(test::atlas().decode(ids).value(), entry["decoded"].get<std::string>());
  }
}

TEST(Golden, CorpusOfTheAtlas) { expect_corpus(test::atlas(), "atlas"); }

TEST(Golden, EveryTokenSurvivesTheStreamAlone) {
  for (uint32_t id = 0; id < test::atlas().size(); ++id) {
    Utf8Stream stream;
    const std::string_view piece = test::atlas().piece(id);
    std::string text = stream.push(piece);
    text += stream.finish();
    const bool whole = valid_utf8(piece) == piece.size();
    EXPECT_EQ(text, whole ? std::string(piece) : "\uFFFD") << id;
  }
}

TEST(Gemma, CompilesToACompactTableAndEqualsTheCorpus) {
  const std::string json = test::read_text(TANDEM_GEMMA_TOKENIZER);
  const auto table = compile_tokenizer(json, "gemma");
  ASSERT_TRUE(table) << table.error().message;
  EXPECT_LT(table->size(), json.size() / 3);
  const auto tokenizer = Tokenizer::load(*table);
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  EXPECT_EQ(tokenizer->size(), 262145u);  // one token is added outside the vocabulary
  EXPECT_EQ(tokenizer->bos(), 2u);
  expect_corpus(*tokenizer, "gemma");
}

}  // namespace
}  // namespace tandem::text
