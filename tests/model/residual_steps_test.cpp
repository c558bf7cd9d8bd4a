// Residual steps that products of a single row take into their kernels.
#include <gtest/gtest.h>

#include "model/models.h"
#include "model/target_sequence.h"
#include "support/compare.h"
#include "support/device.h"

namespace tandem::test {
namespace {

// Where a device gave a product with its residual step other bits than both apart, single rows
// would take them apart: the model is the same.
class ResidualSteps : public ::testing::TestWithParam<ops::Activations> {};

TEST_P(ResidualSteps, InProductsAndApartHaveTheSameBits) {
  const auto make = [](bool force) {
    return make_target(atlas(), test_device(),
                       {.capacity = {.context = 64, .activations = GetParam()},
                        .force_few_rows = force,
                        .leave_steps = true});
  };
  const auto own = make(false), forced = make(true);
  const auto in_own = expect_value(model::TargetSequence::make(*own));
  const auto in_forced = expect_value(model::TargetSequence::make(*forced));
  EXPECT_TRUE(expect_value(in_own->prepare(true)));
  EXPECT_TRUE(expect_value(in_forced->prepare(true)));
  EXPECT_EQ(own->shapes_different(), 0u);
  EXPECT_EQ(forced->shapes_different(), forced->shapes_tried());
  const auto dispatches = [](const model::TargetSequence& sequence, auto matches) {
    size_t count = 0;
    for (const gpu::CommandList* list : sequence.method("decode")) {
      for (const gpu::DispatchInfo& dispatch : list->dispatches()) count += matches(dispatch);
    }
    return count;
  };
  const auto steps = [&](const model::TargetSequence& sequence) {
    return dispatches(sequence, [](const gpu::DispatchInfo& dispatch) {
      return dispatch.kernel.starts_with("linear_norm");
    });
  };
  const auto products_of_one_row = [&](const model::TargetSequence& sequence) {
    return dispatches(sequence, [](const gpu::DispatchInfo& dispatch) {
      return dispatch.kernel.find(" m=1 ") != std::string::npos;
    });
  };
  const spec::Config& config = atlas().config;
  EXPECT_EQ(steps(*in_own), 2 * config.layers.size() - 2) << "all but at the ends of two lists";
  EXPECT_EQ(steps(*in_forced), 0u);
  EXPECT_EQ(products_of_one_row(*in_forced), 0u);
  const std::vector<uint32_t> ids{2, 300, 301, 302, 303};
  EXPECT_EQ(greedy(*in_own, ids, 4), greedy(*in_forced, ids, 4));
  EXPECT_TRUE(same_bits(*in_own->logits(), *in_forced->logits()));
}

INSTANTIATE_TEST_SUITE_P(Activations, ResidualSteps,
                         ::testing::Values(ops::Activations::f32, ops::Activations::int8),
                         [](const auto& tested) {
                           return tested.param == ops::Activations::int8 ? "int8" : "f32";
                         });

}  // namespace
}  // namespace tandem::test
