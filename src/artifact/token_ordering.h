// The certificate of a token ordering: that it names every token of the vocabulary once, so that
// whoever indexes with it stays inside. Made at export, and again at every load.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/sha256.h"
#include "tandem/error.h"

namespace tandem::artifact {

inline constexpr std::string_view token_ordering_plane = "assistant.token_ordering.values";

class TokenOrderingCheck {
 public:
  explicit TokenOrderingCheck(uint32_t vocabulary) : seen_(vocabulary) {}

  // Takes the next ids, whole ones, as the plane holds them. The first that is no token, or that
  // came before, is refused.
  Result<void> add(std::span<const std::byte> ids);
  // The sha256 of all of them, if none is missing.
  Result<Digest> finish();

 private:
  std::vector<bool> seen_;
  uint64_t count_ = 0;
  Sha256 hash_;
};

}  // namespace tandem::artifact
