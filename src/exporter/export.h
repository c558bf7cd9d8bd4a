// Export of a checkpoint, a Hugging Face folder or a GGUF file, alone or with its assistant's, to
// an artifact; or of an assistant's, attached to an artifact that is there.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "artifact/artifact.h"
#include "artifact/provenance.h"
#include "exporter/weights.h"

namespace tandem::exporter {

struct ExportOptions {
  std::optional<std::filesystem::path> assistant;  // its checkpoint
  WeightOptions weights;
  uint32_t input_bound = artifact::default_input_bound;
  // Default: 8960, or what the config allows if that is less.
  std::optional<uint32_t> context_bound;
  // Where the checkpoints were published; by default where the pins say that they match.
  std::optional<artifact::Published> published;
  std::optional<artifact::Published> assistant_published;
  std::filesystem::path sources;  // a file of the user's own pins; empty: none
  PublicationObserver observer;
};

struct ExportReport {
  Digest digest;       // of the artifact
  uint64_t bytes = 0;  // of its shards
  artifact::Recipe recipe;
  std::vector<TensorReport> tensors;
  std::vector<artifact::IgnoredTensor> ignored;  // the assistant's last
  std::vector<std::string> ignored_settings;     // keys of the generation config
  artifact::Provenance provenance;
};

// Publishes the artifact folder `out`, which must not exist, and does not lie in a folder that is
// read. Nothing is left of an export that fails.
Result<ExportReport> export_checkpoint(const std::filesystem::path& checkpoint,
                                       const std::filesystem::path& out,
                                       const ExportOptions& options = {},
                                       const artifact::Progress& progress = {});

// Publishes the assistant of a checkpoint as the artifact folder `out`, attached to the
// plain artifact `onto`. Bounds and all else of the target are that artifact's.
Result<ExportReport> export_assistant(const std::filesystem::path& checkpoint,
                                      const std::filesystem::path& onto,
                                      const std::filesystem::path& out,
                                      const ExportOptions& options = {},
                                      const artifact::Progress& progress = {});

}  // namespace tandem::exporter
