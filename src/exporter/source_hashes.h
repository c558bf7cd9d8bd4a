// The hashes of a checkpoint's large files.
#pragma once

#include <future>
#include <vector>

#include "base/files.h"
#include "base/sha256.h"
#include "exporter/weights.h"

namespace tandem::exporter {

// Hashes whole files beside the caller's own work, as a file's sha256 keeps only one core busy;
// with one thread, when the digests are asked for. The files must outlive it.
class SourceHashes {
 public:
  SourceHashes(const std::vector<File>& files, const WeightOptions& options);
  ~SourceHashes();  // gives up what is not hashed yet
  SourceHashes(const SourceHashes&) = delete;
  SourceHashes& operator=(const SourceHashes&) = delete;

  // Waits for the digests, in the files' order; once.
  Result<std::vector<Digest>> get() { return digests_.get(); }

 private:
  CancelFlag unwanted_ = false;
  std::future<Result<std::vector<Digest>>> digests_;
};

}  // namespace tandem::exporter
