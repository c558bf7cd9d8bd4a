// Which tensors of a checkpoint become which tensors of the artifact.
#pragma once

#include <vector>

#include "artifact/receipt.h"
#include "exporter/checkpoint.h"
#include "spec/tensors.h"

namespace tandem::exporter {

struct BoundTensor {
  spec::Tensor row;  // of the registry
  std::vector<CheckpointTensor> sources;

  uint64_t source_bytes() const;
};

struct Binding {
  std::vector<BoundTensor> tensors;  // in the registry's order
  std::vector<artifact::IgnoredTensor> ignored;
};

// Finds every source tensor of the registry under its name and checks shape and dtype. What is
// missing, and what the registry neither asks for nor ignores by rule, is refused by name.
Result<Binding> bind(const Checkpoint& checkpoint, const spec::Config& config);

}  // namespace tandem::exporter
