// The merge loop, and the lookup structures that it needs.
#include "text/bpe.h"

#include <algorithm>
#include <functional>

#include "text/utf8.h"

namespace tandem::text {
namespace {

uint32_t last_codepoint(std::string_view text) {
  size_t at = text.size() - 1;
  while ((static_cast<uint8_t>(text[at]) & 0xC0) == 0x80) --at;
  return first_character(text.substr(at)).codepoint;
}

}  // namespace

Result<Merges> Merges::make(const Table& table) {
  Merges result(table.merges.size());
  result.merged_.reserve(table.merges.size());
  for (const auto& [left, right, merged] : table.merges) {
    if (!result.ranks_.insert(left, right, static_cast<uint32_t>(result.merged_.size()))) {
      return fail(ErrorCode::malformed_artifact, "tokenizer table: merge {} of '{}' and '{}' again",
                  result.merged_.size(), table.piece(left), table.piece(right));
    }
    result.merged_.push_back(merged);
    const uint32_t bit =
        junction(last_codepoint(table.piece(left)), first_character(table.piece(right)).codepoint);
    result.junctions_[bit / 64] |= uint64_t{1} << (bit % 64);
  }
  return result;
}

void Merger::flush(std::vector<uint32_t>& ids) {
  steps_ += symbols_.size();
  if (symbols_.size() > 1) merge();
  for (uint32_t at = 0; at < symbols_.size(); at = symbols_[at].next) {
    ids.push_back(symbols_[at].id);
  }
  symbols_.clear();
}

void Merger::queue(uint32_t at, std::vector<Pair>& part) {
  Symbol& symbol = symbols_[at];
  symbol.rank =
      symbol.next == no_symbol ? Merges::none : merges_.rank(symbol.id, symbols_[symbol.next].id);
  if (symbol.rank != Merges::none) part.push_back(Pair{symbol.rank} << 32 | at);
}

void Merger::requeue(uint32_t at) {
  if (at == no_symbol) return;
  const size_t before = fresh_.size();
  queue(at, fresh_);
  if (fresh_.size() > before) std::push_heap(fresh_.begin(), fresh_.end(), std::greater<Pair>());
}

bool Merger::is_stale(Pair pair) {
  ++steps_;
  return symbols_[left_symbol(pair)].rank != rank(pair);
}

std::optional<Merger::Pair> Merger::take_first() {
  while (!sorted_.empty() && is_stale(sorted_.back())) sorted_.pop_back();
  if (sorted_.empty()) {
    for (Pair pair : fresh_) {
      if (!is_stale(pair)) sorted_.push_back(pair);
    }
    fresh_.clear();
    std::sort(sorted_.begin(), sorted_.end(), std::greater<Pair>());
  }
  const bool from_sorted = fresh_.empty() || (!sorted_.empty() && sorted_.back() < fresh_.front());
  if (!from_sorted) std::pop_heap(fresh_.begin(), fresh_.end(), std::greater<Pair>());
  std::vector<Pair>& source = from_sorted ? sorted_ : fresh_;
  if (source.empty()) return std::nullopt;
  const Pair first = source.back();
  source.pop_back();
  return first;
}

void Merger::merge() {
  const auto count = static_cast<uint32_t>(symbols_.size());
  for (uint32_t at = 0; at < count; ++at) {
    symbols_[at].previous = at - 1;  // no_symbol before the first
    symbols_[at].next = at + 1 < count ? at + 1 : no_symbol;
    queue(at, sorted_);
  }
  std::sort(sorted_.begin(), sorted_.end(), std::greater<Pair>());
  while (const auto pair = take_first()) {
    if (is_stale(*pair)) continue;
    const uint32_t at = left_symbol(*pair);
    Symbol& symbol = symbols_[at];
    Symbol& absorbed = symbols_[symbol.next];
    symbol.id = merges_.merged(symbol.rank);
    symbol.next = absorbed.next;
    absorbed.rank = Merges::none;
    if (symbol.next != no_symbol) symbols_[symbol.next].previous = at;
    requeue(at);
    requeue(symbol.previous);
  }
}

}  // namespace tandem::text
