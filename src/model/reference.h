// The whole model on the CPU, with its assistant where it is opened for drafts, made of the
// operators' references: what every kernel and method is compared with, and `--device cpu`. Plain
// and sequential: a round is computed when it is submitted.
#pragma once

#include <memory>

#include "model/model.h"
#include "model/weights.h"

namespace tandem::model {

class AssistantReference;

// A sequence that also keeps what an assistant starts from.
class HiddenSequence : public Sequence {
 public:
  // The final-normed hidden state of the row that the newest token was chosen from.
  virtual const std::vector<float>& hidden() const = 0;
};

class Reference : public Model {
 public:
  // The assistant is needed for drafts.
  static Result<std::unique_ptr<Reference>> open(const spec::Config& config,
                                                 const TensorTypes& types, const Capacity& capacity,
                                                 const spec::AssistantConfig* assistant = nullptr);
  ~Reference() override;

  const spec::Config& config() const override { return config_; }
  const Capacity& capacity() const override { return capacity_; }
  Result<void> write(std::string_view plane, uint64_t offset,
                     std::span<const std::byte> bytes) override;
  Result<std::unique_ptr<Sequence>> new_sequence() override;
  Result<std::unique_ptr<HiddenSequence>> hidden_sequence();

  const HostWeights& weights() const { return weights_; }
  // None without drafts.
  const AssistantReference* assistant() const { return assistant_.get(); }

 private:
  Reference(const spec::Config& config, const Capacity& capacity, HostWeights weights);

  spec::Config config_;
  Capacity capacity_;
  HostWeights weights_;
  std::unique_ptr<AssistantReference> assistant_;
};

}  // namespace tandem::model
