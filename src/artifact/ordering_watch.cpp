#include "artifact/ordering_watch.h"

#include "base/error.h"

namespace tandem::artifact {

OrderingWatch::OrderingWatch(const Artifact& artifact) {
  const std::optional<Mtp>& mtp = artifact.manifest().mtp;
  if (artifact.plan().view != View::mtp || !mtp->token_ordering) return;
  check_.emplace(mtp->config.text.vocabulary);
  certified_ = *mtp->token_ordering;
}

bool OrderingWatch::watches(const Segment& segment) const {
  return check_ && segment.plane == token_ordering_plane;
}

Result<void> OrderingWatch::see(const Piece& piece, std::span<const std::byte> bytes) {
  for (const Segment& segment : piece.segments) {
    if (!watches(segment)) continue;
    TRY(see(bytes.subspan(segment.piece_offset, segment.bytes)));
  }
  return {};
}

Result<void> OrderingWatch::finish() {
  if (!check_) return {};
  TRY_ASSIGN(const Digest found, check_->finish());
  if (found == certified_) return {};
  return fail(ErrorCode::hash_mismatch,
              "{}: views.mtp.ordered_embeddings.token_ordering_sha256: expected {}, found {}",
              manifest_file, certified_.hex(), found.hex());
}

}  // namespace tandem::artifact
