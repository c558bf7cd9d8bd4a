// The MTP assistant on the CPU, made of the operators' references: drafts the tokens that follow
// from the target's embedding, hidden state and KV.
#pragma once

#include <memory>

#include "model/model.h"
#include "model/reference.h"
#include "model/weights.h"
#include "ops/linear/linear.h"

namespace tandem::model {

// What one round of drafting starts from.
struct DraftRequest {
  uint32_t token = 0;             // the newest, which has no KV yet
  uint32_t position = 0;          // of that token; at least 1
  std::span<const float> hidden;  // the target's final-normed hidden state at position - 1
  uint32_t steps = 2;
  std::span<const uint32_t> stop_ids = {};  // a draft that is one of them is the last
  bool logits = false;                      // whether to give the rows of logits
};

struct Draft {
  uint32_t token = 0;
  std::vector<float> input;   // embedding of the token before, then the hidden state
  std::vector<float> hidden;  // for the next step: post_projection of the final-normed state
  // [vocabulary], if asked for; with ordered embeddings the tokens of other centroids than the top
  // ones have the smallest scored logit - 1.
  std::vector<float> logits;
};

class AssistantReference {
 public:
  // The target, which must outlive the assistant, lends it its embedding.
  static Result<std::unique_ptr<AssistantReference>> open(const spec::AssistantConfig& config,
                                                          const TensorTypes& types,
                                                          const Reference& target);

  // A part of one of the assistant's planes.
  Result<void> write(std::string_view plane, uint64_t offset, std::span<const std::byte> bytes) {
    return weights_.write(plane, offset, bytes);
  }

  // Reads the donors' KV below the position from a sequence of the target.
  Result<std::vector<Draft>> draft(Sequence& sequence, const DraftRequest& request) const;

 private:
  using Floats = std::vector<float>;
  struct Donor {
    uint32_t positions = 0;
    KvRows rows;
  };
  using Donors = std::map<spec::LayerKind, Donor>;
  struct Scores {
    Floats logits;
    std::vector<uint32_t> tokens;  // of each logit; empty: all in order
  };

  AssistantReference(const spec::AssistantConfig& config, const Reference& target,
                     HostWeights weights)
      : config_(config), target_(target), weights_(std::move(weights)) {}

  Result<void> check(const DraftRequest& request) const;
  Result<Donors> donors(Sequence& sequence, uint32_t position) const;
  Floats input(uint32_t token, std::span<const float> hidden) const;
  Floats final_normed(const Floats& input, Donors& donors, uint32_t position) const;
  Floats attended(uint32_t layer, const Floats& normed, Donor& donor, uint32_t position) const;
  Scores score(const Floats& normed) const;
  Floats row(const Scores& scores) const;
  std::vector<uint32_t> token_ordering() const;

  Floats linear(std::string_view tensor, ops::Epilogue epilogue, const Floats& x) const;
  Floats vector(uint32_t layer, std::string_view tensor) const;

  spec::AssistantConfig config_;
  const Reference& target_;
  HostWeights weights_;
};

}  // namespace tandem::model
