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

void Merger::update_rank(uint32_t at) {
  Symbol& symbol = symbols_[at];
  symbol.rank =
      symbol.next == no_symbol ? Merges::none : merges_.rank(symbol.id, symbols_[symbol.next].id);
  if (symbol.rank == Merges::none) return;
  queue_.push_back(uint64_t{symbol.rank} << 32 | at);
}

void Merger::merge() {
  const auto count = static_cast<uint32_t>(symbols_.size());
  for (uint32_t at = 0; at < count; ++at) {
    symbols_[at].previous = at - 1;  // no_symbol before the first
    symbols_[at].next = at + 1 < count ? at + 1 : no_symbol;
    update_rank(at);
  }
  const auto later = std::greater<uint64_t>();
  std::make_heap(queue_.begin(), queue_.end(), later);
  while (!queue_.empty()) {
    ++steps_;
    std::pop_heap(queue_.begin(), queue_.end(), later);
    const auto rank = static_cast<uint32_t>(queue_.back() >> 32);
    const auto at = static_cast<uint32_t>(queue_.back());
    queue_.pop_back();
    Symbol& symbol = symbols_[at];
    if (symbol.rank != rank) continue;  // the pair has changed since it was queued

    Symbol& absorbed = symbols_[symbol.next];
    symbol.id = merges_.merged(rank);
    symbol.next = absorbed.next;
    absorbed.rank = Merges::none;
    if (symbol.next != no_symbol) symbols_[symbol.next].previous = at;
    for (uint32_t changed : {at, symbol.previous}) {
      if (changed == no_symbol) continue;
      const size_t queued = queue_.size();
      update_rank(changed);
      if (queue_.size() > queued) std::push_heap(queue_.begin(), queue_.end(), later);
    }
  }
}

}  // namespace tandem::text
