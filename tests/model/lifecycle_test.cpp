// What models and sequences leave behind on a device: nothing, however they end; and that what an
// abandoned generation still brings is not taken for the next one's.

#include <gtest/gtest.h>

#include "model/models.h"
#include "support/device.h"
#include "support/memory.h"
#include "support/refusal.h"

namespace tandem::test {
namespace {

const model::TargetOptions small{.capacity = {.context = 64, .input_bound = 8}};

std::vector<uint32_t> some_ids(uint32_t count, uint32_t first = 11) {
  std::vector<uint32_t> ids(count);
  for (uint32_t i = 0; i < count; ++i) ids[i] = (i * 37 + first) % 512;
  return ids;
}

std::string census(const gpu::Device& device) {
  const gpu::Census census = device.census();
  return std::to_string(census.buffers) + " buffers, " + std::to_string(census.buffer_bytes) +
         " bytes, " + std::to_string(census.kernels) + " kernels";
}

void load_and_unload(int cycles) {
  const auto device = open_device();
  std::string loaded;
  for (int cycle = 0; cycle < cycles; ++cycle) {
    {
      const auto target = make_target(tiny_model(), *device, small);
      const auto sequence = make_sequence(*target);
      const auto another = make_sequence(*target);
      EXPECT_EQ(greedy(*sequence, some_ids(9), 2).size(), 2u);
      if (cycle == 0) loaded = census(*device);
      EXPECT_EQ(census(*device), loaded) << cycle;
    }
    ASSERT_EQ(device->census().buffers, 0u) << cycle;
    ASSERT_EQ(device->census().buffer_bytes, 0u) << cycle;
  }
}

TEST(Lifecycle, ThreeLoadsLeaveNothing) { load_and_unload(3); }

TEST(LifecycleLong, FiftyLoadsLeaveNothing) { load_and_unload(50); }

TEST(Lifecycle, WhatAnAbandonedGenerationBringsIsDropped) {
  const auto target = make_target(tiny_model(), test_device(), small);
  const auto sequence = make_sequence(*target);
  const std::vector<uint32_t> old_ids = some_ids(6, 200), ids = some_ids(13);
  const std::vector<uint32_t> expected = greedy(*sequence, ids, 5);
  ASSERT_NE(greedy(*sequence, old_ids, 5), expected);
  for (uint32_t ahead = 0; ahead < 5; ++ahead) {
    ASSERT_TRUE(accepted(sequence->prefill(0, old_ids, {.max_tokens = 30})));
    for (uint32_t round = 0; round < ahead; ++round) ASSERT_TRUE(accepted(sequence->decode()));
    ASSERT_EQ(sequence->in_flight(), ahead + 1);
    // Nothing was harvested: every result of the old rounds is still to come.
    ASSERT_TRUE(accepted(sequence->prefill(0, ids, {.max_tokens = 5})));
    EXPECT_EQ(sequence->in_flight(), 1u);
    for (int round = 1; round < 5; ++round) ASSERT_TRUE(accepted(sequence->decode()));
    for (uint32_t i = 0; i < 5; ++i) {
      const auto round = sequence->harvest(true);
      ASSERT_TRUE(round && *round) << ahead;
      EXPECT_EQ((*round)->targets[0], expected[i]) << ahead;
      EXPECT_EQ((*round)->position + 1, ids.size() + i) << ahead;
    }
    EXPECT_EQ(sequence->in_flight(), 0u);
  }
}

TEST(Lifecycle, ALossIsTheSameErrorFromEveryCall) {
  const auto device = open_device();
  const auto target = make_target(tiny_model(), *device, small);
  auto sequence = make_sequence(*target);
  const std::vector<uint32_t> ids = some_ids(9);
  ASSERT_TRUE(accepted(sequence->prefill(0, ids, {.max_tokens = 30})));
  ASSERT_TRUE(accepted(sequence->decode()));
  device->lose();
  const model::LogitsSink ignore = [](uint32_t, std::span<const float>) -> Result<void> {
    return {};
  };
  for (int time = 0; time < 2; ++time) {
    EXPECT_TRUE(refused(sequence->harvest(true), ErrorCode::device_lost, {"open it again"}));
    EXPECT_TRUE(refused(sequence->decode(), ErrorCode::device_lost));
    EXPECT_TRUE(refused(sequence->logits(), ErrorCode::device_lost));
    EXPECT_TRUE(refused(sequence->kv(0, 0, 1), ErrorCode::device_lost));
    EXPECT_TRUE(refused(target->sequence(), ErrorCode::device_lost));
    EXPECT_TRUE(refused(target->write("final_norm.values", 0, std::vector<std::byte>(4)),
                        ErrorCode::device_lost));
  }
  for (int time = 0; time < 2; ++time) {
    EXPECT_TRUE(refused(sequence->prefill(0, ids, {}), ErrorCode::device_lost));
    EXPECT_TRUE(refused(sequence->score(ids, ignore, {}), ErrorCode::device_lost));
  }
  const HashModel tiny = tiny_model();
  EXPECT_TRUE(refused(model::Target::open(*device, tiny.config, tiny.types(), small),
                      ErrorCode::device_lost));
}

// As many buffers of this size as there are to be had. None is touched, so that a software adapter
// takes no memory of the host.
std::vector<gpu::Buffer> hoard(gpu::Device& device, uint64_t bytes) {
  std::vector<gpu::Buffer> buffers;
  Result<gpu::Buffer> buffer = device.make_buffer(bytes, "hoard");
  for (; buffer; buffer = device.make_buffer(bytes, "hoard")) buffers.push_back(std::move(*buffer));
  EXPECT_TRUE(refused(buffer, ErrorCode::out_of_memory));
  return buffers;
}

TEST(Lifecycle, APlanWithinTheLimitsThatFindsNoMemoryLeavesNothing) {
  const auto device = open_device();
  const gpu::Limits& limits = device->info().limits;
  // Wide heads, and the longest context whose keys still fit a buffer.
  HashModel large = tiny_model();
  for (spec::Layer& layer : large.config.layers) {
    if (layer.kind != spec::LayerKind::full) continue;
    layer.head_dim = 4096;
    layer.rope.rotated_pairs = 1;
  }
  const uint64_t position_bytes = 2 * 4096 * sizeof(float);
  const uint64_t positions =
      std::min(limits.max_buffer_bytes, limits.max_binding_bytes) / position_bytes;
  const uint32_t context = static_cast<uint32_t>(positions);
  large.config.max_positions = context;
  const model::TargetOptions options{
      .capacity = {.context = context, .input_bound = 8, .kv = ops::KvType::f32}};
  {
    const auto target = model::Target::open(*device, large.config, large.types(), options);
    ASSERT_TRUE(accepted(target));
    const std::vector<gpu::Buffer> taken = hoard(*device, positions * position_bytes);
    const std::string before = census(*device);
    for (int time = 0; time < 2; ++time) {
      EXPECT_TRUE(refused((*target)->sequence(), ErrorCode::out_of_memory,
                          {"keys", std::to_string(positions * position_bytes)}));
      EXPECT_EQ(census(*device), before);
    }
  }
  EXPECT_EQ(device->census().buffers, 0u);
  const auto target = make_target(tiny_model(), *device, small);
  EXPECT_EQ(greedy(*make_sequence(*target), some_ids(5), 2).size(), 2u);
}

void soak(model::Model& model, const std::function<std::string()>& holds) {
  const auto sequence = make_sequence(model);
  const std::vector<uint32_t> expected = greedy(*sequence, some_ids(9), 8);
  const std::string at_first = holds();
  uint64_t resident = 0;
  for (int generation = 0; generation < 1000; ++generation) {
    if (generation == 100) resident = resident_bytes();
    ASSERT_EQ(greedy(*sequence, some_ids(9), 8), expected) << generation;
    ASSERT_EQ(holds(), at_first) << generation;
  }
  EXPECT_LT(resident_bytes(), resident + (8u << 20)) << "after 100 generations " << resident;
}

TEST(LifecycleLong, AThousandGenerationsOnTheCpu) {
  const auto model = make_model(tiny_model(), Place::cpu, small.capacity);
  soak(*model, [] { return std::string(); });
}

TEST(LifecycleLong, AThousandGenerationsOnADevice) {
  const auto model = make_model(tiny_model(), Place::gpu_f16, small.capacity);
  soak(*model, [] { return census(test_device()); });
}

}  // namespace
}  // namespace tandem::test
