// Plans: what is planned is what is allocated, and limits are refused with their numbers.

#include "model/plan.h"

#include <gtest/gtest.h>

#include "model/models.h"
#include "support/compare.h"
#include "support/device.h"
#include "support/golden.h"

namespace tandem::test {
namespace {

constexpr gpu::Limits small_device{.max_buffer_bytes = 256 << 20, .max_binding_bytes = 128 << 20};

spec::Config geometry(const std::string& file) {
  const auto config = spec::read_config(
      read_text(std::string(TANDEM_SOURCE_DIR) + "/tests/spec/data/" + file), file);
  EXPECT_TRUE(config) << config.error().message;
  return *config;
}

model::TensorTypes all(const spec::Config& config, spec::WeightType type) {
  model::TensorTypes types;
  for (const spec::Tensor& tensor : spec::tensors(config)) {
    types[tensor.name] =
        tensor.tensor_class == spec::TensorClass::vector ? spec::WeightType::f32 : type;
  }
  return types;
}

TEST(Plan, E2bFitsBindingsOf128MiB) {
  const spec::Config config = geometry("e2b.json");
  const auto plan = model::make_plan(config, nullptr, all(config, spec::WeightType::q4_0),
                                     {.context = 8960}, small_device);
  ASSERT_TRUE(plan) << plan.error().message;
  for (const auto* buffers : {&plan->weights, &plan->scratch, &plan->sequence}) {
    for (const model::PlannedBuffer& buffer : *buffers) {
      EXPECT_LE(buffer.bytes, small_device.max_binding_bytes) << buffer.name;
    }
  }
  std::map<std::string, uint32_t> parts;
  for (const model::PlannedTensor& tensor : plan->tensors) {
    parts[tensor.tensor.name] = tensor.parts();
    EXPECT_TRUE(tensor.parts() == 1 || tensor.part_rows % 64 == 0) << tensor.tensor.name;
  }
  // 262144 rows of 768 bytes (1536 columns) and of 4480 bytes (35 x 256), in parts of at most 128
  // MiB.
  EXPECT_EQ(parts["embedding"], 2u);
  EXPECT_EQ(parts["per_layer_embedding"], 9u);
  EXPECT_EQ(parts["layers.20.gate_up"], 1u);
  // Q4_0 takes 18 bytes for 32 weights; E2B's text model has 4.63 G of them, norms apart.
  EXPECT_NEAR(static_cast<double>(plan->weight_bytes()), 4.63e9 / 32 * 18, 0.03e9);
}

TEST(Plan, RefusalsNameWhatIsTooLarge) {
  const spec::Config config = geometry("e2b.json");
  const model::TensorTypes types = all(config, spec::WeightType::q4_0);
  const auto refusal = [&](const model::Capacity& capacity, const gpu::Limits& limits) {
    const auto plan = model::make_plan(config, nullptr, types, capacity, limits);
    return plan ? std::string("accepted")
                : std::string(name(plan.error().code)) + ": " + plan.error().message;
  };
  EXPECT_EQ(refusal({.context = 4096}, small_device), "accepted");
  EXPECT_NE(refusal({.context = config.max_positions + 1}, small_device).find("invalid_argument"),
            std::string::npos);
  const std::string large =
      refusal({.context = config.max_positions, .kv = ops::KvType::f32}, small_device);
  EXPECT_NE(large.find("limit_exceeded"), std::string::npos) << large;
  EXPECT_NE(large.find("134217728"), std::string::npos) << large;
  gpu::Limits tiny = small_device;
  tiny.max_binding_bytes = 4096;
  EXPECT_NE(refusal({.context = 128}, tiny).find("tensor"), std::string::npos);
  EXPECT_NE(refusal({.context = 0}, small_device).find("invalid_argument"), std::string::npos);
  EXPECT_NE(refusal({.context = 16, .input_bound = 0}, small_device).find("invalid_argument"),
            std::string::npos);
}

TEST(Plan, BoundsAreIndependent) {
  const spec::Config config = geometry("e2b.json");
  const model::TensorTypes types = all(config, spec::WeightType::q4_0);
  const auto bytes = [&](uint32_t context, uint32_t input_bound) {
    const auto plan = model::make_plan(
        config, nullptr, types, {.context = context, .input_bound = input_bound}, small_device);
    EXPECT_TRUE(plan) << plan.error().message;
    return std::pair(plan->scratch_bytes(), plan->sequence_bytes());
  };
  const auto base = bytes(4096, 512);
  EXPECT_LT(bytes(4096, 64).first, base.first);
  EXPECT_GT(bytes(8192, 512).second, base.second);
  EXPECT_EQ(bytes(64, 512).second, bytes(64, 64).second)
      << "an input bound over the context is the context";
}

TEST(Plan, AtlasRunsAtLimitsOf128KiBWithTheSameBits) {
  const model::TargetOptions options{.capacity = {.context = 128, .input_bound = 16}};
  const auto whole = make_target(atlas(), test_device(), options);
  gpu::Limits limits = test_device().info().limits;
  limits.max_buffer_bytes = limits.max_binding_bytes = 128 << 10;
  const auto device = open_device({.limits = limits});
  const auto split = make_target(atlas(), *device, options);
  for (const model::PlannedBuffer& buffer : split->plan().weights)
    ASSERT_LE(buffer.bytes, 128u << 10);
  const auto in_whole = make_sequence(*whole), in_split = make_sequence(*split);
  const std::vector<uint32_t> ids = Golden("target").ids("short.ids");
  EXPECT_TRUE(same_bits(logits_after(*in_split, ids), logits_after(*in_whole, ids))) << "prefill";
  EXPECT_EQ(greedy(*in_split, ids, 8), greedy(*in_whole, ids, 8));
  EXPECT_TRUE(same_bits(*in_split->logits(), *in_whole->logits())) << "decode";
  EXPECT_TRUE(same_bits(all_logits(*in_split, ids), all_logits(*in_whole, ids))) << "score";
}

TEST(Plan, WeightsOutsideTheirPlanesAreRefused) {
  const HashModel weights = tiny_model();
  const auto target = make_target(weights, test_device(), {.capacity = {.context = 16}});
  const std::vector<std::byte> bytes(8);
  EXPECT_TRUE(target->write("final_norm.values", 0, bytes));
  EXPECT_FALSE(target->write("final_norm.values", weights.config.hidden * 4 - 4, bytes));
  EXPECT_FALSE(target->write("final_norm.values", ~uint64_t{0} - 3, bytes));
  EXPECT_FALSE(target->write("no_such.values", 0, bytes));
}

}  // namespace
}  // namespace tandem::test
