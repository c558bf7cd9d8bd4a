#include "engine/history.h"

#include <algorithm>

namespace tandem::engine {

void History::begin(std::span<const uint32_t> prompt) {
  ids_.assign(prompt.begin(), prompt.end());
  with_kv_ = static_cast<uint32_t>(prompt.size());
}

void History::append(uint32_t id) {
  with_kv_ = static_cast<uint32_t>(ids_.size());
  ids_.push_back(id);
}

void History::clear() {
  ids_.clear();
  with_kv_ = 0;
}

uint32_t History::shared(std::span<const uint32_t> prompt) const {
  const auto differs = std::mismatch(prompt.begin(), prompt.end(), ids_.begin(), ids_.end()).first;
  const size_t equal = differs - prompt.begin();
  const size_t all_but_one = prompt.empty() ? 0 : prompt.size() - 1;
  return static_cast<uint32_t>(std::min({equal, all_but_one, size_t{with_kv_}}));
}

}  // namespace tandem::engine
