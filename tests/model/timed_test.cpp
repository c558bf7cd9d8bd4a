// Timed sequences: which submissions have times, that no kernel says it moves more than it is bound
// to, and how much a decode moves.
#include <gtest/gtest.h>

#include "model/models.h"
#include "model/target_sequence.h"
#include "support/device.h"

namespace tandem::test {
namespace {

constexpr uint32_t context = 64;
constexpr uint32_t input_bound = 5;

std::unique_ptr<model::Target> target(gpu::Passes passes) {
  return make_target(
      tiny_model(), test_device(),
      {.capacity = {.context = context, .input_bound = input_bound}, .passes = passes});
}

std::vector<std::string> kernels(const std::vector<gpu::DispatchTime>& times) {
  std::vector<std::string> names;
  for (const gpu::DispatchTime& time : times) names.emplace_back(time.dispatch.kernel);
  return names;
}

std::vector<std::string> kernels(const model::TargetSequence& sequence, std::string_view method) {
  std::vector<std::string> names;
  for (const gpu::CommandList* list : sequence.method(method)) {
    for (const gpu::DispatchInfo& info : list->dispatches()) names.emplace_back(info.kernel);
  }
  return names;
}

TEST(Timed, EverySubmissionOfPrefillAndDecodeHasItsTimes) {
  const auto timed = target(gpu::Passes::timed);
  const auto sequence = expect_value(model::TargetSequence::make(*timed));
  const std::vector<uint32_t> ids(2 * input_bound + 2, 7);
  expect_success(sequence->prefill(0, ids, {.max_tokens = 9}));
  EXPECT_TRUE(expect_value(sequence->harvest(true)));
  const auto prefill = sequence->take_times();
  ASSERT_EQ(prefill.size(), 3u) << "chunks of 5, 5 and 2 rows";
  const uint32_t rows[] = {5, 5, 2}, positions[] = {5, 10, 12};
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(prefill[i].front().extent.rows, rows[i]);
    EXPECT_EQ(prefill[i].front().extent.positions, positions[i]);
  }
  EXPECT_EQ(kernels(prefill.back()), kernels(*sequence, "prefill"));
  EXPECT_TRUE(sequence->take_times().empty()) << "times are handed out once";

  for (int i = 0; i < 2; ++i) expect_success(sequence->decode());
  EXPECT_TRUE(expect_value(sequence->harvest(true)));
  const auto decode = sequence->take_times();
  ASSERT_EQ(decode.size(), 1u) << "the other round is not harvested";
  EXPECT_EQ(kernels(decode.front()), kernels(*sequence, "decode"));
  EXPECT_EQ(decode.front().front().extent.rows, 1u);
}

TEST(Timed, TokensAreThoseOfAnUntimedRun) {
  const std::vector<uint32_t> ids{3, 1, 4, 1, 5, 9, 2, 6};
  const auto timed = target(gpu::Passes::timed), plain = target(gpu::Passes::one_per_submission);
  EXPECT_EQ(greedy(*make_sequence(*timed), ids, 6), greedy(*make_sequence(*plain), ids, 6));
}

TEST(Timed, UntimedSubmissionsHaveNoTimes) {
  const auto plain = target(gpu::Passes::one_per_submission);
  const auto sequence = expect_value(model::TargetSequence::make(*plain));
  expect_success(sequence->prefill(0, std::vector<uint32_t>{1, 2}, {}));
  EXPECT_TRUE(expect_value(sequence->harvest(true)));
  EXPECT_TRUE(sequence->take_times().empty());
}

TEST(Traffic, NoKernelMovesMoreThanIsBound) {
  const auto plain = target(gpu::Passes::one_per_submission);
  const auto sequence = expect_value(model::TargetSequence::make(*plain));
  const std::pair<std::string_view, uint32_t> methods[] = {{"decode", 1},
                                                           {"score", plain->plan().score_rows}};
  for (const auto& [method, rows] : methods) {
    for (const gpu::CommandList* list : sequence->method(method)) {
      for (const gpu::DispatchInfo& info : list->dispatches()) {
        ASSERT_TRUE(info.traffic) << info.kernel;
        const uint64_t bytes = gpu::bytes(*info.traffic, {rows, context});
        EXPECT_GT(bytes, 0u) << info.kernel;
        EXPECT_LE(bytes, info.bytes_read + info.bytes_written) << method << ": " << info.kernel;
      }
    }
  }
}

// Of a decoded token of the atlas, and of its weights all but the table that it reads a row of.
struct Moved {
  uint64_t bytes = 0;
  uint64_t weights = 0;
  size_t dispatches = 0;
};
Moved moved(ops::Activations activations) {
  const auto model =
      make_target(atlas(), test_device(),
                  {.capacity = {.context = 512, .activations = activations}, .leave_steps = true});
  const auto sequence = expect_value(model::TargetSequence::make(*model));
  Moved moved;
  for (const gpu::CommandList* list : sequence->method("decode")) {
    moved.dispatches += list->dispatch_count();
    for (const gpu::DispatchInfo& info : list->dispatches()) {
      moved.bytes += gpu::bytes(*info.traffic, {1, 256});
    }
  }
  for (const model::PlannedBuffer& buffer : model->plan().weights) {
    if (!buffer.name.starts_with("per_layer_embedding")) moved.weights += buffer.bytes;
  }
  return moved;
}

TEST(Traffic, ADecodeReadsItsWeightsOnceAndLittleElseInFewDispatches) {
  const Moved in_f32 = moved(ops::Activations::f32), in_int8 = moved(ops::Activations::int8);
  EXPECT_GE(in_f32.bytes, in_f32.weights);
  EXPECT_LE(static_cast<double>(in_f32.bytes), 1.2 * static_cast<double>(in_f32.weights));
  EXPECT_LT(in_int8.bytes, in_f32.bytes);
  EXPECT_GE(in_int8.bytes, in_int8.weights);
  // Eight of a layer and one more where it owns KV: the products after its residual steps do them,
  // but at the end of a list, of which there are two.
  const size_t layers = atlas().config.layers.size(), owning = atlas().config.owning_layers();
  EXPECT_LE(in_f32.dispatches, 8 * layers + owning + 9 + 2);
  EXPECT_LE(in_int8.dispatches, 8 * layers + owning + 10 + 2);
}

}  // namespace
}  // namespace tandem::test
