// Damaged tables: each field, each length, each byte.
#include "text/table.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "text/tokenizers.h"

namespace tandem::text {
namespace {

using Bytes = std::vector<std::byte>;

const Bytes& tiny_table() {
  static const Bytes bytes = compile_tokenizer(test::tiny_json().dump(), "tiny").value();
  return bytes;
}

// Where the fields begin (docs/text.md).
constexpr size_t version_at = 8;
constexpr size_t tokens_at = 12;
constexpr size_t merges_at = 16;
constexpr size_t added_at = 20;
constexpr size_t bos_at = 24;
constexpr size_t byte_ids_at = 60;
constexpr size_t lengths_at = byte_ids_at + 4 * 256;

uint32_t get32(const Bytes& bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) value |= static_cast<uint32_t>(bytes[at + i]) << (8 * i);
  return value;
}

void put32(Bytes& bytes, size_t at, uint32_t value) {
  for (size_t i = 0; i < 4; ++i) bytes[at + i] = static_cast<std::byte>(value >> (8 * i));
}

// What a program does with a tokenizer that did load.
void use(const Tokenizer& tokenizer) {
  for (bool parse : {false, true}) {
    const auto ids =
        tokenizer.encode("ab ab<bos>é<tab>c <|turn>abababab\n", {.parse_special = parse});
    ASSERT_TRUE(ids);
    for (uint32_t id : *ids) ASSERT_LT(id, tokenizer.size());
    ASSERT_TRUE(tokenizer.decode(*ids));
  }
}

TEST(Table, SurvivesItsBytes) {
  const Table table = read_table(tiny_table()).value();
  EXPECT_EQ(write_table(table), tiny_table());
  EXPECT_EQ(table.size(), 5u + 256 + 6 + 4);
  EXPECT_EQ(table.merges.size(), 4u);
  EXPECT_EQ(table.added.size(), 5u);
}

TEST(Table, EachFieldIsChecked) {
  const Table table = read_table(tiny_table()).value();
  const size_t pieces_at = lengths_at + 2 * table.size();
  const size_t first_merge_at = pieces_at + table.pieces.size();
  const size_t first_added_at = first_merge_at + 12 * table.merges.size();
  struct Case {
    const char* name;
    std::function<void(Bytes&)> change;
  };
  const auto put = [](size_t at, uint32_t value) {
    return [=](Bytes& bytes) { put32(bytes, at, value); };
  };
  const auto add = [](size_t at, uint32_t difference) {
    return [=](Bytes& bytes) { put32(bytes, at, get32(bytes, at) + difference); };
  };
  const auto byte = [](size_t at, uint8_t value) {
    return [=](Bytes& bytes) { bytes[at] = std::byte{value}; };
  };
  const uint32_t minus_one = ~0u;
  const std::vector<Case> cases = {
      {"magic", byte(0, 'T')},
      {"older version", add(version_at, minus_one)},
      {"newer version", add(version_at, 1)},
      {"one token more", add(tokens_at, 1)},
      {"one token fewer", add(tokens_at, minus_one)},
      {"no tokens", put(tokens_at, 0)},
      {"too many tokens", put(tokens_at, minus_one)},
      {"one merge more", add(merges_at, 1)},
      {"one merge fewer", add(merges_at, minus_one)},
      {"too many merges", put(merges_at, minus_one)},
      {"one added token more", add(added_at, 1)},
      {"one added token fewer", add(added_at, minus_one)},
      {"too many added tokens", put(added_at, minus_one)},
      {"BOS no token", put(bos_at, table.size())},
      {"BOS a plain token", put(bos_at, table.size() - 1)},
      {"BOS added, not special", put(bos_at, 4)},
      {"a byte no token", put(byte_ids_at + 4 * 65, table.size())},
      {"a byte another's token", add(byte_ids_at + 4 * 65, 1)},
      {"a byte a piece", put(byte_ids_at + 4 * 'a', table.size() - 9)},
      {"a length too large", byte(lengths_at + 2 * 100, 2)},
      {"an empty piece", byte(lengths_at + 2 * 262, 0)},
      {"pieces past the end", byte(lengths_at + 2 * 270 + 1, 0xFF)},
      {"a piece not UTF-8", byte(pieces_at + table.pieces.size() - 1, 0x80)},
      {"an added token's piece", byte(pieces_at + 1, 'q')},
      {"left of a merge", add(first_merge_at, 1)},
      {"right of a merge", add(first_merge_at + 4, 1)},
      {"result of a merge", add(first_merge_at + 8, 1)},
      {"left no token", put(first_merge_at, table.size())},
      {"right no token", put(first_merge_at + 4, minus_one)},
      {"result no token", put(first_merge_at + 8, table.size())},
      {"left a byte", put(first_merge_at, 5 + 'a')},
      {"id of an added token", add(first_added_at, 1)},
      {"added no token", put(first_added_at, table.size())},
      {"flag of an added token", byte(first_added_at + 4, 2)},
      {"length of an added token", byte(first_added_at + 5, 4)},
      {"empty added token", byte(first_added_at + 5, 0)},
      {"spelling of an added token", byte(first_added_at + 7, '[')},
  };
  for (const auto& [name, change] : cases) {
    Bytes bytes = tiny_table();
    change(bytes);
    ASSERT_NE(bytes, tiny_table()) << name;
    const auto tokenizer = Tokenizer::load(bytes);
    ASSERT_FALSE(tokenizer) << name;
    EXPECT_EQ(tokenizer.error().code, ErrorCode::malformed_artifact) << name;
    EXPECT_NE(tokenizer.error().message.find("tokenizer table"), std::string::npos) << name;
  }
}

TEST(Table, ARepeatedMergeIsRefused) {
  Table table = read_table(tiny_table()).value();
  table.merges.push_back(table.merges[0]);
  EXPECT_FALSE(Tokenizer::load(write_table(table)));
}

TEST(Table, EveryOtherLengthIsRefused) {
  for (size_t length = 0; length < tiny_table().size(); ++length) {
    EXPECT_FALSE(Tokenizer::load(std::span(tiny_table()).first(length))) << length;
  }
  Bytes longer = tiny_table();
  longer.push_back(std::byte{0});
  EXPECT_FALSE(Tokenizer::load(longer));
}

TEST(Table, EveryChangedByteIsRefusedOrHarmless) {
  for (size_t at = 0; at < tiny_table().size(); ++at) {
    for (int flip : {0x01, 0x80, 0xFF}) {
      Bytes bytes = tiny_table();
      bytes[at] ^= static_cast<std::byte>(flip);
      if (const auto tokenizer = Tokenizer::load(bytes)) use(*tokenizer);
    }
  }
}

TEST(Table, RandomDamageIsRefusedOrHarmless) {
  std::mt19937 random(3);
  for (int round = 0; round < 1000; ++round) {
    Bytes bytes = tiny_table();
    for (unsigned i = 1 + random() % 4; i > 0; --i) {
      const size_t at = random() % bytes.size();
      if (random() % 4 == 0 && at + 4 <= bytes.size()) {
        put32(bytes, at, static_cast<uint32_t>(random() % 2 ? random() : random() % 300));
      } else if (random() % 8 == 0) {
        bytes.erase(bytes.begin() + at, bytes.begin() + std::min(at + 3, bytes.size()));
      } else {
        bytes[at] = static_cast<std::byte>(random());
      }
    }
    if (const auto tokenizer = Tokenizer::load(bytes)) use(*tokenizer);
  }
}

}  // namespace
}  // namespace tandem::text
