// Writes one shard and hashes its pieces on all cores.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "artifact/manifest.h"
#include "base/publication.h"

namespace tandem::exporter {

class ShardWriter {
 public:
  // `shard` has a file and a role.
  static Result<ShardWriter> create(Publication& publication, const artifact::Shard& shard,
                                    unsigned threads);

  Result<void> write(std::span<const std::byte> bytes);
  // Zeros up to an offset in the file.
  Result<void> pad_to(uint64_t offset);
  // Closes the file; the shard's size and pieces.
  Result<artifact::Shard> finish();

 private:
  ShardWriter(OutputFile file, const artifact::Shard& shard, unsigned threads)
      : file_(std::move(file)), threads_(threads), shard_{shard.file, shard.role, 0, {}} {}

  Result<void> flush();

  OutputFile file_;
  unsigned threads_;
  artifact::Shard shard_;
  std::vector<std::byte> pending_;  // whole pieces but for the end of the file
};

}  // namespace tandem::exporter
