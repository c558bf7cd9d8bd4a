// The weights' part of an export: decides types, lays out shards and writes them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "artifact/artifact.h"
#include "base/cancel.h"
#include "base/publication.h"
#include "exporter/recipe.h"
#include "exporter/shard_writer.h"

namespace tandem::exporter {

struct WeightOptions {
  RecipeOptions recipe;
  uint64_t shard_bytes = 256 << 20;  // a shard takes no further tensor beyond this size
  uint64_t scale_bytes =
      256 << 20;  // scales kept in memory; a larger plane costs a second pass over its tensor
  unsigned threads = 0;                // 0: one for each core
  const CancelFlag* cancel = nullptr;  // of the whole export; none: nobody ends it
};

struct TensorReport {
  std::string name;
  spec::WeightType type = spec::WeightType::f32;
  bool exact = false;   // every stored weight equals the checkpoint's
  uint64_t raised = 0;  // see exporter/quantize.h
};

// Writes the planes of one tensor, which begin at the offsets of its entry.
using WriteTensor =
    std::function<Result<void>(const BoundTensor&, const artifact::TensorEntry&, ShardWriter&)>;

// Lays out shards by the manifest's recipe, writes them tensor by tensor, and adds them to the
// manifest's tensors and shards.
Result<void> write_shards(const std::vector<BoundTensor>& tensors, const WeightOptions& options,
                          Publication& publication, artifact::Manifest& manifest,
                          const WriteTensor& write);

// Writes all shards to the publication and adds to the manifest's recipe, tensors and shards, and
// the certificate of the token ordering. Progress counts bytes of the checkpoints.
Result<std::vector<TensorReport>> write_weights(const std::vector<BoundTensor>& tensors,
                                                const WeightOptions& options,
                                                Publication& publication,
                                                artifact::Manifest& manifest,
                                                const artifact::Progress& progress);

}  // namespace tandem::exporter
