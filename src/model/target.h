// The target model on a GPU device, with its assistant where it is opened for drafts: plan, weights
// and scratch buffers, shared by all of its sequences.
#pragma once

#include <deque>
#include <memory>
#include <utility>
#include <variant>

#include "gpu/device.h"
#include "model/model.h"
#include "model/plan.h"
#include "model/weights.h"
#include "ops/linear_norm/linear_norm.h"

namespace tandem::model {

struct TargetOptions {
  Capacity capacity;
  std::optional<spec::AssistantConfig> assistant;  // needed for drafts
  gpu::Passes passes = gpu::Passes::one_per_submission;
  // Takes every shape's rows for different in bits, so that single rows run by the kernels for
  // several.
  bool force_few_rows = false;
  // Whether products of single rows do the residual steps before them; none: on a GPU. On a
  // software adapter what each of a product's workgroups does costs more than a dispatch.
  std::optional<bool> leave_steps;
};

class Target : public Model {
 public:
  // The device must outlive the target.
  static Result<std::unique_ptr<Target>> open(gpu::Device& device, const spec::Config& config,
                                              const TensorTypes& types,
                                              const TargetOptions& options);

  const spec::Config& config() const override { return config_; }
  const Capacity& capacity() const override { return plan_.capacity; }
  Result<void> write(std::string_view plane, uint64_t offset,
                     std::span<const std::byte> bytes) override;
  Result<std::unique_ptr<Sequence>> new_sequence() override;

  // None without drafts.
  const spec::AssistantConfig* assistant() const {
    return capacity().drafts > 0 ? &*options_.assistant : nullptr;
  }
  const Plan& plan() const { return plan_; }
  const Buffers& scratch() const { return scratch_; }
  const DeviceWeights& weights() const { return weights_; }
  gpu::Device& device() const { return device_; }
  gpu::Passes passes() const { return options_.passes; }

  // How products of few rows are cut, by shape; others as ops::tiling says. For sequences made from
  // now on.
  void set_tilings(ops::Tilings tilings);
  // Of every shape of such products that sequences have recorded, one. Of its views only the
  // weights' are sure to be there.
  const std::map<std::string, ops::Linear>& products() const { return products_; }
  // Cuts a product of few rows.
  void cut(ops::Linear& op);
  // The same, and gives one of a single row its route. A row must have the same bits alone, with
  // the residual step that its product takes, and beside others, with the step before it, or single
  // rows take the route for several. A shape that was not asked for before is taken to be the same
  // until `try_rows` has tried it.
  Result<void> suit(ops::Linear& op, TakenStep step);
  bool leaves_steps() const { return options_.leave_steps.value_or(!device_.info().software); }
  // Tries the device with all shapes that were asked for. True once all are known; with `wait` they
  // are.
  Result<bool> try_rows(bool wait);
  // How many shapes were tried, and in how many of them the bits differed.
  uint32_t shapes_tried() const { return static_cast<uint32_t>(identical_.size()); }
  uint32_t shapes_different() const;
  // How many of the products are cut by set_tilings.
  uint32_t shapes_tuned() const;

 private:
  Target(gpu::Device& device, const spec::Config& config, const TargetOptions& options)
      : device_(device), config_(config), options_(options) {}
  // What is known of a check; one of a new name begins.
  template <class Begin>
  Result<bool> is_identical(const std::string& name, Begin begin);

  gpu::Device& device_;
  spec::Config config_;
  TargetOptions options_;
  Plan plan_;
  DeviceWeights weights_;
  Buffers scratch_;
  ops::Tilings tilings_;
  std::map<std::string, ops::Linear> products_;
  // By shape, and whether the product takes a residual step, and what kind.
  std::map<std::string, bool> identical_;
  std::deque<std::pair<std::string, std::variant<ops::RowCheck, ops::NormCheck>>> untried_;
};

}  // namespace tandem::model
