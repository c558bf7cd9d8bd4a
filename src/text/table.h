// The compact table that a tokenizer.json is compiled to: its contents, its bytes (docs/text.md)
// and the rules that hold between its parts.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/sha256.h"

namespace tandem::text {

struct Merge {
  uint32_t left;
  uint32_t right;
  uint32_t merged;
};

// A token that is found in the text before anything else is done to it.
struct AddedToken {
  uint32_t id;
  bool special;         // a control token, which plain text can never produce
  std::string content;  // as it is spelled in the text
};

struct Table {
  Digest source;                         // of the tokenizer.json
  uint32_t bos = 0;                      // an added token
  std::array<uint32_t, 256> byte_ids{};  // the token of each byte
  std::vector<uint32_t> piece_ends;      // of each token's bytes in `pieces`
  std::string pieces;                    // what the tokens decode to: spaces, not U+2581
  std::vector<Merge> merges;             // the first one has precedence
  std::vector<AddedToken> added;

  uint32_t size() const { return static_cast<uint32_t>(piece_ends.size()); }
  std::string_view piece(uint32_t id) const {
    const uint32_t begin = id == 0 ? 0 : piece_ends[id - 1];
    return std::string_view(pieces).substr(begin, piece_ends[id] - begin);
  }
  void append_piece(std::string_view bytes) {
    pieces += bytes;
    piece_ends.push_back(static_cast<uint32_t>(pieces.size()));
  }
};

std::vector<std::byte> write_table(const Table& table);

// Reads what write_table wrote. Bytes of another shape, and parts that contradict each other, are
// refused as malformed_artifact.
Result<Table> read_table(std::span<const std::byte> bytes);

constexpr std::string_view separator = "\xE2\x96\x81";  // U+2581, which stands for a space

// Every U+2581 to a space, as the decoder does it.
std::string with_spaces(std::string_view text);

}  // namespace tandem::text
