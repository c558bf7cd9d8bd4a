// The whole model on the CPU, made of the operators' references: what every kernel and method is
// compared with, and `--device cpu`. Plain and sequential: a round is computed when it is
// submitted.
#pragma once

#include <memory>

#include "model/model.h"
#include "model/weights.h"

namespace tandem::model {

// A sequence that also keeps what an assistant starts from.
class HiddenSequence : public Sequence {
 public:
  // The final-normed hidden state of the row that the last round chose its token from.
  virtual const std::vector<float>& hidden() const = 0;
};

class Reference : public Model {
 public:
  static Result<std::unique_ptr<Reference>> open(const spec::Config& config,
                                                 const TensorTypes& types,
                                                 const Capacity& capacity);

  const spec::Config& config() const override { return config_; }
  const Capacity& capacity() const override { return capacity_; }
  Result<void> write(std::string_view plane, uint64_t offset,
                     std::span<const std::byte> bytes) override {
    return weights_.write(plane, offset, bytes);
  }
  Result<std::unique_ptr<Sequence>> sequence() override;
  Result<std::unique_ptr<HiddenSequence>> hidden_sequence();

  const HostWeights& weights() const { return weights_; }

 private:
  Reference(const spec::Config& config, const Capacity& capacity, HostWeights weights)
      : config_(config), capacity_(capacity), weights_(std::move(weights)) {}

  spec::Config config_;
  Capacity capacity_;
  HostWeights weights_;
};

}  // namespace tandem::model
