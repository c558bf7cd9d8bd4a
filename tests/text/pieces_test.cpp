// Tokenizers that are lists, as in GGUF files: the same table as from tokenizer.json, with merges
// or with scores.
#include "text/pieces.h"

#include <gtest/gtest.h>

#include <set>

#include "support/refusal.h"
#include "text/tokenizers.h"

namespace tandem::test {
namespace {

using nlohmann::json;
using text::PieceKind;
using text::PieceList;

// The lists of a tokenizer.json. The score of a normal token that merges make is minus the number
// of those that are made before it.
struct Lists {
  explicit Lists(const json& tokenizer) : document(tokenizer) {
    const json& vocabulary = document["model"]["vocab"];
    spellings.resize(vocabulary.size());
    list.kinds.assign(spellings.size(), PieceKind::normal);
    list.scores.assign(spellings.size(), -1000);
    for (const auto& [token, id] : vocabulary.items()) spellings[id] = token;
    for (const json& added : document["added_tokens"]) {
      const uint32_t id = added["id"];
      if (id >= spellings.size()) continue;
      list.kinds[id] = added["special"] ? PieceKind::control : PieceKind::user_defined;
      if (added["content"] == "<bos>") list.bos = id;
    }
    std::set<uint32_t> made;
    for (const json& merge : document["model"]["merges"]) {
      const std::string left = merge[0], right = merge[1];
      merges.push_back(left + " " + right);
      const uint32_t id = vocabulary[left + right];
      if (list.kinds[id] == PieceKind::normal && made.insert(id).second)
        list.scores[id] = 1 - static_cast<double>(made.size());
    }
    list.spellings.assign(spellings.begin(), spellings.end());
    list.merges.emplace(merges.begin(), merges.end());
  }

  json document;
  std::vector<std::string> spellings;
  std::vector<std::string> merges;
  PieceList list;
};

// A table without the digest of its source.
std::string plain(const Result<std::vector<std::byte>>& table) {
  EXPECT_TRUE(accepted(table));
  if (!table) return {};
  std::string bytes(reinterpret_cast<const char*>(table->data()), table->size());
  return bytes.replace(28, 32, 32, '\0');
}

TEST(Pieces, MergesGiveTheTableOfTokenizerJson) {
  const json jsons[] = {tiny_json(),
                        json::parse(read_text(golden_folder + "atlas/tokenizer.json"))};
  for (const json& document : jsons) {
    const Lists lists(document);
    const std::string expected = plain(text::compile_tokenizer(document.dump(), "tokenizer.json"));
    EXPECT_TRUE(plain(text::compile_pieces(lists.list, "model.gguf")) == expected);
  }
}

TEST(Pieces, ScoresGiveTheTableOfTokenizerJson) {
  const json document = tiny_json();
  Lists lists(document);
  lists.list.merges.reset();
  EXPECT_TRUE(plain(text::compile_pieces(lists.list, "model.gguf")) ==
              plain(text::compile_tokenizer(document.dump(), "tokenizer.json")));
}

// Of the ways to make a token, that with the longer left part comes first; user-defined tokens
// have the score 0, and of equals the larger left token comes first. Runs of spaces are U+2581.
TEST(Pieces, OrderOfWaysToMakeAToken) {
  Lists lists(tiny_json({{"a", "b"}, {"ab", "c"}}));
  const auto add = [&](std::string spelling, PieceKind kind, double score) {
    lists.spellings.push_back(std::move(spelling));
    lists.list.kinds.push_back(kind);
    lists.list.scores.push_back(score);
  };
  add("bc", PieceKind::normal, -0.5);
  add("  ", PieceKind::user_defined, -1000);
  lists.list.spellings.assign(lists.spellings.begin(), lists.spellings.end());
  lists.list.merges.reset();
  const auto bytes = text::compile_pieces(lists.list, "model.gguf");
  ASSERT_TRUE(accepted(bytes));
  const text::Table table = text::read_table(*bytes).value();
  std::vector<std::string> merges;
  for (const text::Merge& merge : table.merges) {
    merges.push_back(fmt::format("{}+{}", table.piece(merge.left), table.piece(merge.right)));
  }
  EXPECT_EQ(merges, (std::vector<std::string>{"a+b", " + ", "b+c", "ab+c", "a+bc"}));
  EXPECT_EQ(table.added.back().content, "\u2581\u2581");
  EXPECT_FALSE(table.added.back().special);
}

// The real tokenizer, where it is there: 514906 merges from its scores alone, in the same order.
TEST(GemmaPieces, ScoresGiveEveryMerge) {
  json document = json::parse(read_text(TANDEM_GEMMA_TOKENIZER));
  json& added = document["added_tokens"];
  while (added.back()["id"].get<size_t>() >= document["model"]["vocab"].size())
    added.erase(added.size() - 1);
  Lists lists(document);
  lists.list.merges.reset();
  EXPECT_TRUE(plain(text::compile_pieces(lists.list, "model.gguf")) ==
              plain(text::compile_tokenizer(document.dump(), "tokenizer.json")));
}

TEST(Pieces, ListsThatAreWrong) {
  const json document = tiny_json();
  const Lists lists(document);
  const auto refusal = [&](auto damage) {
    PieceList list = lists.list;
    damage(list);
    return text::compile_pieces(list, "model.gguf");
  };
  const ErrorCode malformed = ErrorCode::malformed_text;
  EXPECT_TRUE(refused(refusal([](PieceList& list) { list.kinds.pop_back(); }), malformed,
                      {"model.gguf", "types"}));
  EXPECT_TRUE(refused(refusal([](PieceList& list) {
                        list.merges.reset();
                        list.scores.pop_back();
                      }),
                      malformed, {"scores"}));
  EXPECT_TRUE(refused(refusal([](PieceList& list) { list.spellings[9] = ""; }), malformed,
                      {"token 9", "empty"}));
  EXPECT_TRUE(refused(refusal([](PieceList& list) { list.spellings[9] = list.spellings[8]; }),
                      malformed, {"tokens 8 and 9"}));
  EXPECT_TRUE(refused(refusal([](PieceList& list) { list.merges->front() = "ab"; }), malformed,
                      {"merges[0]", "'ab'"}));
  EXPECT_TRUE(refused(refusal([](PieceList& list) { list.merges->front() = "a z"; }), malformed,
                      {"merges[0]", "'z'"}));
  EXPECT_TRUE(
      refused(refusal([](PieceList& list) { list.bos = 1 << 20; }), malformed, {"model.gguf"}));
  EXPECT_TRUE(refused(refusal([](PieceList& list) {
                        for (std::string_view& spelling : list.spellings) {
                          if (spelling == "<0x41>") spelling = "?";
                        }
                      }),
                      ErrorCode::unsupported, {"<0x41>"}));
}

TEST(Pieces, SourceOfATable) {
  const Lists lists(tiny_json());
  const auto table = text::compile_pieces(lists.list, "model.gguf");
  ASSERT_TRUE(accepted(table));
  const std::string bytes(reinterpret_cast<const char*>(table->data()), table->size());
  const Digest digest = sha256("anything");
  const auto named = text::with_source(bytes, digest);
  ASSERT_TRUE(accepted(named));
  EXPECT_EQ(text::Tokenizer::load(*named)->source(), digest);
  EXPECT_EQ(plain(named), bytes);
  EXPECT_TRUE(refused(text::with_source("tandemtk", digest), ErrorCode::malformed_artifact));
}

}  // namespace
}  // namespace tandem::test
