// Byte pair encoding: the merges of a tokenizer, and their application to one stretch of text.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "text/pair_map.h"
#include "text/table.h"

namespace tandem::text {

class Merges {
 public:
  static constexpr uint32_t none = PairMap::missing;

  static Result<Merges> make(const Table& table);

  // The precedence of a pair's merge (lowest first), or none.
  uint32_t rank(uint32_t left, uint32_t right) const { return ranks_.find(left, right); }
  uint32_t merged(uint32_t rank) const { return merged_[rank]; }

  // False only if no merge ever joins a token that ends with the character `left` to one that
  // begins with `right`: no token can then cross from one to the other, so that a text may be cut
  // between them.
  bool may_join(uint32_t left, uint32_t right) const {
    const uint32_t bit = junction(left, right);
    return (junctions_[bit / 64] >> (bit % 64) & 1) != 0;
  }

 private:
  explicit Merges(size_t count) : ranks_(count), junctions_(junction_bits / 64) {}

  // A hash: a stray hit only makes a stretch longer than it need be.
  static constexpr uint32_t junction_bits = 1u << 18;
  static uint32_t junction(uint32_t left, uint32_t right) {
    return (left * 0x9E3779B1u ^ right * 0x85EBCA77u) * 0xC2B2AE3Du >> (32 - 18);
  }

  PairMap ranks_;
  std::vector<uint32_t> merged_;  // by rank
  std::vector<uint64_t> junctions_;
};

// Merges stretches of tokens, one after the other: of all adjacent pairs the one with the lowest
// rank, the leftmost of these, until none is left. A queue of pairs over a linked list makes this
// n log n in the length of a stretch.
class Merger {
 public:
  explicit Merger(const Merges& merges) : merges_(merges) {}

  void add(uint32_t id) { symbols_.push_back({id, no_symbol, no_symbol, Merges::none}); }
  // Merges what was added since the last call, and appends the tokens that remain to `ids`.
  void flush(std::vector<uint32_t>& ids);

  // How many tokens and pairs were looked at so far: a measure of work that needs no clock.
  uint64_t steps() const { return steps_; }

 private:
  struct Symbol {
    uint32_t id;
    uint32_t previous;
    uint32_t next;
    uint32_t rank;  // of the merge with `next`; none: there is none, or this symbol was absorbed
  };

  static constexpr uint32_t no_symbol = std::numeric_limits<uint32_t>::max();

  // rank << 32 | index of the left symbol, so that the smallest is the first to merge. It is stale
  // once the left symbol has another rank.
  using Pair = uint64_t;
  static uint32_t rank(Pair pair) { return static_cast<uint32_t>(pair >> 32); }
  static uint32_t left_symbol(Pair pair) { return static_cast<uint32_t>(pair); }

  void merge();
  // Looks up the rank of the symbol at `at`, and adds the pair to a part of the queue.
  void queue(uint32_t at, std::vector<Pair>& part);
  void requeue(uint32_t at);
  bool is_stale(Pair pair);
  std::optional<Pair> take_first();

  const Merges& merges_;
  std::vector<Symbol> symbols_;
  // The queue is in two parts, as a large heap is slow to pop: new pairs wait in a heap, and all
  // that are there when the sorted part has run out are sorted at once.
  std::vector<Pair> sorted_;  // the last one is the smallest
  std::vector<Pair> fresh_;   // a heap, the first one is the smallest
  uint64_t steps_ = 0;
};

}  // namespace tandem::text
