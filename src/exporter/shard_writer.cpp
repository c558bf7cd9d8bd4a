#include "exporter/shard_writer.h"

#include <algorithm>

#include "base/error.h"
#include "base/parallel.h"

namespace tandem::exporter {
namespace {

using artifact::piece_bytes;

constexpr uint64_t pending_bytes = 16 * piece_bytes;

}  // namespace

Result<ShardWriter> ShardWriter::create(Publication& publication, const artifact::Shard& shard,
                                        unsigned threads) {
  TRY_ASSIGN(OutputFile output, publication.create(shard.file));
  return ShardWriter(std::move(output), shard, threads);
}

Result<void> ShardWriter::write(std::span<const std::byte> bytes) {
  shard_.bytes += bytes.size();
  while (!bytes.empty()) {
    const size_t taken = std::min<size_t>(bytes.size(), pending_bytes - pending_.size());
    pending_.insert(pending_.end(), bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(taken));
    bytes = bytes.subspan(taken);
    if (pending_.size() == pending_bytes) TRY(flush());
  }
  return {};
}

Result<void> ShardWriter::pad_to(uint64_t offset) {
  if (offset < shard_.bytes) {
    return fail(ErrorCode::internal, "{}: byte {} is behind byte {}", shard_.file, offset,
                shard_.bytes);
  }
  return write(std::vector<std::byte>(offset - shard_.bytes));
}

Result<artifact::Shard> ShardWriter::finish() {
  TRY(flush());
  TRY(file_.close());
  return std::move(shard_);
}

Result<void> ShardWriter::flush() {
  const std::span<const std::byte> bytes = pending_;
  const size_t count = (bytes.size() + piece_bytes - 1) / piece_bytes;
  std::vector<Digest> digests(count);
  parallel_for(
      count, 1,
      [&](uint64_t begin, uint64_t end) {
        for (uint64_t i = begin; i < end; ++i) {
          const size_t offset = i * piece_bytes;
          digests[i] =
              sha256(bytes.subspan(offset, std::min<size_t>(piece_bytes, bytes.size() - offset)));
        }
      },
      threads_);
  shard_.pieces.insert(shard_.pieces.end(), digests.begin(), digests.end());
  TRY(file_.write(bytes));
  pending_.clear();
  return {};
}

}  // namespace tandem::exporter
