// Verification of an artifact: every byte of every file.
#pragma once

#include <filesystem>

#include "artifact/artifact.h"
#include "base/cancel.h"

namespace tandem::artifact {

struct Verification {
  Artifact artifact;
  uint64_t files = 0;
};

// All that Artifact::open and load check, and that the folder holds nothing else. An error is the
// reason why not. `threads` 0: one for each core.
Result<Verification> verify(const std::filesystem::path& folder, const Progress& progress = {},
                            unsigned threads = 0, const CancelFlag* cancel = nullptr);

}  // namespace tandem::artifact
