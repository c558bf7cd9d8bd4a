// Export of a checkpoint, a Hugging Face folder or a GGUF file, alone or with its assistant's, to
// an artifact.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "artifact/artifact.h"
#include "exporter/weights.h"

namespace tandem::exporter {

struct ExportOptions {
  std::optional<std::filesystem::path> assistant;  // its checkpoint
  WeightOptions weights;
  uint32_t input_bound = artifact::default_input_bound;
  // Default: 8960, or what the config allows if that is less.
  std::optional<uint32_t> context_bound;
  PublicationObserver observer;
};

struct ExportReport {
  Digest digest;       // of the artifact
  uint64_t bytes = 0;  // of its shards
  artifact::Recipe recipe;
  std::vector<TensorReport> tensors;
  std::vector<artifact::IgnoredTensor> ignored;  // the assistant's last
};

// Publishes the artifact folder `out`, which must not exist. Nothing is left of an export that
// fails.
Result<ExportReport> export_checkpoint(const std::filesystem::path& checkpoint,
                                       const std::filesystem::path& out,
                                       const ExportOptions& options = {},
                                       const artifact::Progress& progress = {});

}  // namespace tandem::exporter
