#include "model/target.h"

#include <algorithm>

#include "base/error.h"
#include "model/build.h"
#include "model/target_sequence.h"
#include "ops/qkv_rope/qkv_rope.h"
#include "spec/pair.h"

namespace tandem::model {
namespace {

Result<void> check_assistant(const spec::Config& config, const TargetOptions& options) {
  if (options.capacity.drafts == 0) return {};
  if constexpr (!has_mtp) {
    return fail(ErrorCode::unsupported, "{} drafts in a round: this build is without MTP",
                options.capacity.drafts);
  }
  if (options.assistant) return spec::check_pair(config, *options.assistant, "assistant");
  return fail(ErrorCode::invalid_argument, "{} drafts in a round need an assistant",
              options.capacity.drafts);
}

}  // namespace

Result<std::unique_ptr<Target>> Target::open(gpu::Device& device, const spec::Config& config,
                                             const TensorTypes& types,
                                             const TargetOptions& options) {
  std::unique_ptr<Target> target(new Target(device, config, options));
  TRY(check_assistant(config, options));
  TRY_ASSIGN(target->plan_, make_plan(config, options.assistant ? &*options.assistant : nullptr,
                                      types, options.capacity, device.info().limits));
  TRY_ASSIGN(target->weights_, DeviceWeights::make(device, target->plan_));
  TRY_ASSIGN(target->scratch_, make_buffers(device, target->plan_.scratch));
  for (size_t i = 0; i < target->plan_.angles.size(); ++i) {
    const PlannedAngles& planned = target->plan_.angles[i];
    const std::vector<float> angles =
        ops::rope_angles(planned.rope, planned.head_dim, target->plan_.capacity.context);
    const gpu::View view = target->scratch_.find(fmt::format("angles.{}", i))->second.view();
    if (!angles.empty()) TRY(device.write(view, std::as_bytes(std::span(angles))));
  }
  return target;
}

Result<void> Target::write(std::string_view plane, uint64_t offset,
                           std::span<const std::byte> bytes) {
  return weights_.write(plane, offset, bytes);
}

Result<std::unique_ptr<Sequence>> Target::new_sequence() {
  TRY_ASSIGN(std::unique_ptr<Sequence> sequence, TargetSequence::make(*this));
  return sequence;
}

void Target::set_tilings(ops::Tilings tilings) {
  tilings_ = std::move(tilings);
  // Known of other kernels.
  identical_.clear();
  untried_.clear();
}

void Target::cut(ops::Linear& op) {
  const auto product = products_.emplace(ops::shape(op), op).first;
  const auto tiling = tilings_.find(product->first);
  if (tiling != tilings_.end()) ops::cut(op, tiling->second);
}

Result<void> Target::suit(ops::Linear& op, TakenStep step) {
  cut(op);
  if (op.rows != ops::RowRoute::one) return {};
  const std::string shape = ops::shape(op);
  bool same = true;
  if (step == TakenStep::none || !ops::takes_norm(op)) {
    TRY_ASSIGN(same, is_identical(shape, [&] { return ops::RowCheck::begin(device_, op); }));
  } else {
    const bool scaled = step == TakenStep::scaled;
    const std::string name = shape + (scaled ? " after a scaled step" : " after a step");
    TRY_ASSIGN(same, is_identical(name, [&] {
                 return ops::NormCheck::begin(device_, op,
                                              static_cast<float>(config_.rms_norm_epsilon), scaled);
               }));
  }
  if (!same) op.rows = ops::RowRoute::few;
  return {};
}

template <class Begin>
Result<bool> Target::is_identical(const std::string& name, Begin begin) {
  const auto [known, is_new] = identical_.emplace(name, true);
  if (is_new) {
    TRY_ASSIGN(auto check, begin());
    untried_.emplace_back(name, std::move(check));
  }
  return known->second;
}

Result<bool> Target::try_rows(bool wait) {
  while (!untried_.empty()) {
    auto& [shape, check] = untried_.front();
    TRY_ASSIGN(const std::optional<bool> same,
               std::visit([&](auto& of_kind) { return of_kind.identical(wait); }, check));
    if (!same) return false;
    identical_[shape] = *same && !options_.force_few_rows;
    untried_.pop_front();
  }
  return true;
}

uint32_t Target::shapes_tuned() const {
  return static_cast<uint32_t>(
      std::count_if(products_.begin(), products_.end(),
                    [&](const auto& product) { return tilings_.contains(product.first); }));
}

uint32_t Target::shapes_different() const {
  return static_cast<uint32_t>(std::count_if(identical_.begin(), identical_.end(),
                                             [](const auto& entry) { return !entry.second; }));
}

}  // namespace tandem::model
