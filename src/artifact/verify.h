// Verification of an artifact: every byte of every file.
#pragma once

#include <filesystem>

#include "artifact/artifact.h"
#include "base/cancel.h"

namespace tandem::artifact {

struct Verification {
  Artifact artifact;
  uint64_t files = 0;  // in the folder, or in both
};

// All that Artifact::open and load check, with an attached assistant if one is named, and that the
// folders hold nothing else. An error is the reason why not. `threads` 0: one for each core.
Result<Verification> verify(const std::filesystem::path& folder, const Progress& progress = {},
                            const std::filesystem::path& attached = {}, unsigned threads = 0,
                            const CancelFlag* cancel = nullptr);

}  // namespace tandem::artifact
