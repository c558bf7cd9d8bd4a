// Artifacts of random weights in a real model's geometry, for measuring speed without a checkpoint.
#pragma once

#include <filesystem>
#include <optional>

#include "artifact/artifact.h"
#include "base/cancel.h"
#include "spec/config.h"

namespace tandem::exporter {

struct SynthesizeOptions {
  std::optional<spec::AssistantConfig> assistant;  // of the same weights; it must fit the config
  uint64_t seed = 1;
  unsigned threads = 0;                // 0: one for each core
  const CancelFlag* cancel = nullptr;  // none: nobody ends it
};

struct SynthesizeReport {
  Digest digest;       // of the artifact
  uint64_t bytes = 0;  // of its shards
};

// Publishes the artifact folder `out`, which must not exist; its receipt says that it is synthetic.
// The types are those of an export whose weights lie on the Q4_0 grid. The same config and seed
// give the same bytes; activations keep their size from layer to layer.
Result<SynthesizeReport> synthesize(const spec::Config& config, const std::filesystem::path& out,
                                    const SynthesizeOptions& options = {},
                                    const artifact::Progress& progress = {});

}  // namespace tandem::exporter
