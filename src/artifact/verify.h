// Verification of an artifact: every byte of every file.
#pragma once

#include <filesystem>

#include "artifact/artifact.h"

namespace tandem::artifact {

struct Verification {
  Digest digest;  // Artifact::digest
  uint64_t tensors = 0;
  uint64_t files = 0;
  uint64_t bytes = 0;  // of the shards
};

// All that Artifact::open and load check, and that the folder holds nothing else. An error is the
// reason why not.
Result<Verification> verify(const std::filesystem::path& folder, const Progress& progress = {});

}  // namespace tandem::artifact
