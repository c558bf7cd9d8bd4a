// Watches what the token ordering of a view is on its way to the sink.
#pragma once

#include <optional>
#include <span>

#include "artifact/artifact.h"
#include "artifact/token_ordering.h"

namespace tandem::artifact {

class OrderingWatch {
 public:
  explicit OrderingWatch(const Artifact& artifact);

  // Whether the bytes of this segment are to be seen.
  bool watches(const Segment& segment) const;
  // Those of a piece that was verified, before it is written.
  Result<void> see(const Piece& piece, std::span<const std::byte> bytes);
  // Those of one segment.
  Result<void> see(std::span<const std::byte> ids) { return check_->add(ids); }
  Result<void> finish();

 private:
  std::optional<TokenOrderingCheck> check_;
  Digest certified_;
};

}  // namespace tandem::artifact
