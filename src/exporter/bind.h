// Which tensors of which checkpoint become which tensors of the artifact.
#pragma once

#include <vector>

#include "artifact/receipt.h"
#include "exporter/checkpoint.h"
#include "spec/tensors.h"

namespace tandem::exporter {

struct BoundTensor {
  spec::Tensor row;  // of the registry
  std::vector<CheckpointTensor> sources;
  const Checkpoint* checkpoint = nullptr;  // that holds the sources

  uint64_t source_bytes() const;
};

struct Binding {
  std::vector<BoundTensor> tensors;  // in the registry's order
  std::vector<artifact::IgnoredTensor> ignored;
};

// Finds every source tensor of the registry under its name and checks shape and dtype. What is
// missing, and what the registry neither asks for nor ignores by rule, is refused by name.
// The checkpoint must outlive the binding.
Result<Binding> bind(const Checkpoint& checkpoint, const spec::Config& config);
Result<Binding> bind(const Checkpoint& checkpoint, const spec::AssistantConfig& config);

}  // namespace tandem::exporter
