// Records what the assistant does in a round: drafts that lie in the timeline behind the newest
// token. The formulas are those of Hugging Face transformers' gemma4_assistant model.
#pragma once

#include <functional>
#include <utility>

#include "gpu/device.h"
#include "model/plan.h"
#include "model/weights.h"
#include "ops/linear/linear.h"

namespace tandem::model {

// Cuts a product of one row as suits the device.
using Cut = std::function<void(ops::Linear&)>;

class Drafting {
 public:
  // Of the target's config only what the assistant reads: embedding, hidden size, donor layers.
  Drafting(gpu::Device& device, const spec::Config& target, const spec::AssistantConfig& assistant,
           const Plan& plan, const DeviceWeights& weights, const Buffers& scratch,
           const Buffers& sequence, Cut cut)
      : device_(device),
        target_(target),
        assistant_(assistant),
        plan_(plan),
        weights_(weights),
        scratch_(scratch),
        sequence_(sequence),
        cut_(std::move(cut)) {}

  // All drafts of a round: each the most likely token, or one sampled as the target's would be.
  Result<gpu::CommandList> drafts(bool sampled);

 private:
  // Of a draft after the first; the first begins with what the round before left.
  Result<void> input(gpu::CommandList& commands, uint32_t draft);
  Result<void> layer(gpu::CommandList& commands, uint32_t layer);
  Result<void> attention(gpu::CommandList& commands, uint32_t layer);
  Result<void> likely_centroids(gpu::CommandList& commands);
  // The heads choose a draft and take it.
  Result<void> ordered_head(gpu::CommandList& commands, uint32_t draft, bool sampled);
  Result<void> plain_head(gpu::CommandList& commands, uint32_t draft, bool sampled);
  Result<void> sample(gpu::CommandList& commands, uint32_t draft);
  Result<void> take(gpu::CommandList& commands, uint32_t draft, uint32_t scored, gpu::View tokens,
                    gpu::View scores);

  Result<void> linear(gpu::CommandList& commands, std::string_view tensor, ops::Epilogue epilogue,
                      gpu::View x, gpu::View y);
  // h = (h + norm(tensor x) * weight) * scalar, or without weight h = tensor x;
  // normed = norm(h) * next.
  Result<void> linear_add_norm(gpu::CommandList& commands, std::string_view tensor, gpu::View x,
                               gpu::View weight, gpu::View scalar, gpu::View next);

  gpu::View view(std::string_view buffer) const;      // of the draft's row
  gpu::View row(std::string_view buffer) const;       // scratch shared with the target's rows
  gpu::View sequence(std::string_view buffer) const;  // of the sequence
  // The row that a draft follows; that of draft 0 stands where all queries of the round do.
  gpu::View step(uint32_t draft) const;
  gpu::View vector(uint32_t layer, std::string_view tensor) const;
  // The halves of the assistant's input: the token's embedding, and the hidden state before it.
  gpu::View embedded() const;
  gpu::View hidden() const;

  gpu::Device& device_;
  const spec::Config& target_;
  const spec::AssistantConfig& assistant_;
  const Plan& plan_;
  const DeviceWeights& weights_;
  const Buffers& scratch_;
  const Buffers& sequence_;
  Cut cut_;
};

}  // namespace tandem::model
