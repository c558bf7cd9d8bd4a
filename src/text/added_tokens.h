// Finds added tokens in a text: the leftmost one, and of those that begin there the longest.
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "text/pair_map.h"
#include "text/table.h"

namespace tandem::text {

class AddedTokens {
 public:
  explicit AddedTokens(const std::vector<AddedToken>& tokens);

  struct Match {
    size_t begin;
    size_t bytes;
    uint32_t index;  // in `tokens`
  };

  // The first match at or after `begin`.
  std::optional<Match> find(std::string_view text, size_t begin) const;

  // The index of the token that is spelled so.
  std::optional<uint32_t> exact(std::string_view content) const;

 private:
  std::optional<Match> match_at(std::string_view text, size_t begin) const;

  PairMap children_;                // of a trie: (node, byte) -> node; the root is 0
  std::vector<uint32_t> token_of_;  // by node; PairMap::missing for inner nodes
  std::bitset<256> first_bytes_;
};

}  // namespace tandem::text
