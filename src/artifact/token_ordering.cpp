#include "artifact/token_ordering.h"

#include <cstring>

#include "base/error.h"

namespace tandem::artifact {

Result<void> TokenOrderingCheck::add(std::span<const std::byte> ids) {
  for (size_t at = 0; at < ids.size(); at += sizeof(uint32_t), ++count_) {
    uint32_t id = 0;
    std::memcpy(&id, &ids[at], sizeof(id));
    if (id >= seen_.size() || seen_[id]) {
      return fail(ErrorCode::bad_value,
                  "token_ordering[{}]: expected each of the {} tokens once, found {}{}", count_,
                  seen_.size(), id, id < seen_.size() ? " again" : "");
    }
    seen_[id] = true;
  }
  hash_.update(ids);
  return {};
}

Result<Digest> TokenOrderingCheck::finish() {
  if (count_ == seen_.size()) return hash_.finish();
  return fail(ErrorCode::bad_value, "token_ordering: expected {} tokens, found {}", seen_.size(),
              count_);
}

}  // namespace tandem::artifact
