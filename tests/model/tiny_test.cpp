// What must hold of the target's methods whatever the weights, on a tiny model with a window of 8:
// chunks, the ring, shared KV, scratch, passes, the multi-row route.

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <thread>

#include "model/models.h"
#include "model/target_sequence.h"
#include "ops/sample/sample.h"
#include "support/compare.h"
#include "support/device.h"
#include "support/refusal.h"

namespace tandem::test {
namespace {

constexpr uint32_t window = 8;
constexpr uint32_t context = 64;

std::vector<uint32_t> some_ids(uint32_t count) {
  std::vector<uint32_t> ids(count);
  for (uint32_t i = 0; i < count; ++i) ids[i] = (i * 37 + 11) % tiny_model().config.vocabulary;
  return ids;
}

std::unique_ptr<model::Target> tiny_target(model::TargetOptions options) {
  if (options.capacity.context == 0) options.capacity.context = context;
  return make_target(tiny_model(), test_device(), options);
}

// Runs ids in chunks of the given sizes and gives the logits after the last.
std::vector<float> chunked(model::Sequence& sequence, std::span<const uint32_t> ids,
                           const std::vector<uint32_t>& chunks) {
  std::vector<float> logits;
  uint32_t position = 0;
  for (uint32_t chunk : chunks) {
    logits = logits_after(sequence, ids.subspan(position, chunk), position);
    position += chunk;
  }
  EXPECT_EQ(position, ids.size());
  return logits;
}

TEST(Tiny, ContextsAroundTheWindowAreTheReferences) {
  for (const ops::KvType kv : {ops::KvType::f32, ops::KvType::f16}) {
    const auto target = tiny_target({.capacity = {.input_bound = 5, .kv = kv}});
    const auto on_gpu = make_sequence(*target);
    const auto reference = make_model(tiny_model(), Place::cpu, {.context = context});
    const auto on_cpu = make_sequence(*reference);
    const double bound = kv == ops::KvType::f32 ? 1e-4 : 2e-3;
    for (uint32_t length : {1u, window - 1, window, window + 1, 2 * window, 40u}) {
      const std::vector<uint32_t> ids = some_ids(length);
      EXPECT_TRUE(close(logits_after(*on_gpu, ids), logits_after(*on_cpu, ids), bound)) << length;
      EXPECT_EQ(greedy(*on_gpu, ids, 16), greedy(*on_cpu, ids, 16)) << length;
    }
  }
}

TEST(Tiny, ChunksAreOneChunkIsStepByStep) {
  const auto whole = tiny_target({.capacity = {.input_bound = 32, .kv = ops::KvType::f32}});
  const auto sequence = make_sequence(*whole);
  const std::vector<uint32_t> ids = some_ids(9);
  const std::vector<float> one = chunked(*sequence, ids, {9});
  const std::vector<uint32_t> continuation = greedy(*sequence, ids, 12);
  EXPECT_TRUE(close(chunked(*sequence, ids, {5, 3, 1}), one, 1e-4));
  EXPECT_TRUE(close(chunked(*sequence, ids, std::vector<uint32_t>(9, 1)), one, 1e-4));
  for (uint32_t input_bound : {1u, 2u, 5u}) {
    const auto target =
        tiny_target({.capacity = {.input_bound = input_bound, .kv = ops::KvType::f32}});
    const auto chunks = make_sequence(*target);
    EXPECT_TRUE(close(chunked(*chunks, ids, {9}), one, 1e-4)) << input_bound;
    EXPECT_EQ(greedy(*chunks, ids, 12), continuation) << input_bound;
  }
}

TEST(Tiny, TheRingIsAFullCacheWithAMask) {
  // An input bound of the whole context makes the ring as long as the context: a full-length cache.
  const auto ring = tiny_target({.capacity = {.input_bound = 3, .kv = ops::KvType::f32}});
  const auto full = tiny_target({.capacity = {.input_bound = context, .kv = ops::KvType::f32}});
  const spec::Layer& sliding = ring->config().layers[0];
  ASSERT_LT(model::kv_slots(ring->config(), sliding, ring->capacity()), 16u);
  ASSERT_EQ(model::kv_slots(full->config(), sliding, full->capacity()), context);
  const std::vector<uint32_t> ids = some_ids(3);
  const auto in_ring = make_sequence(*ring);
  const auto in_full = make_sequence(*full);
  EXPECT_EQ(greedy(*in_ring, ids, 40), greedy(*in_full, ids, 40));
  EXPECT_TRUE(same_bits(*in_ring->logits(), *in_full->logits()));
}

TEST(Tiny, GenerationStopsAtTheBudgetAStopIdAndTheContext) {
  const auto target = tiny_target({});
  const auto sequence = make_sequence(*target);
  const std::vector<uint32_t> ids = some_ids(10);
  const std::vector<uint32_t> free = greedy(*sequence, ids, 1000);
  EXPECT_EQ(free.size(), context - ids.size() + 1) << "the last token has no slot to be run in";
  for (uint32_t count : {1u, 2u, 3u}) EXPECT_EQ(greedy(*sequence, ids, count).size(), count);

  ASSERT_TRUE(sequence->prefill(0, ids, {.max_tokens = 30, .stop_ids = {free[0], free[2]}}));
  const auto first = sequence->harvest(true);
  ASSERT_TRUE(first && *first);
  EXPECT_EQ((*first)->targets[0], free[0]);
  EXPECT_EQ((*first)->position + 1, ids.size());
  EXPECT_EQ((*first)->stop, ops::StopCode::stop_id);
  // Rounds that were submitted past the stop emit nothing.
  for (int round = 0; round < 3; ++round) ASSERT_TRUE(sequence->decode());
  EXPECT_EQ(sequence->in_flight(), 3u);
  for (int round = 0; round < 3; ++round) EXPECT_FALSE(*sequence->harvest(true));
}

TEST(Tiny, RoundsRunAheadOfTheReadback) {
  const auto target = tiny_target({});
  const auto sequence = make_sequence(*target);
  const std::vector<uint32_t> ids = some_ids(6);
  const std::vector<uint32_t> expected = greedy(*sequence, ids, 9);
  ASSERT_TRUE(sequence->prefill(0, ids, {.max_tokens = 9}));
  for (int round = 0; round < 12; ++round) ASSERT_TRUE(sequence->decode());
  std::vector<uint32_t> emitted;
  for (int round = 0; round < 13; ++round) {
    const auto harvested = sequence->harvest(true);
    ASSERT_TRUE(harvested);
    if (*harvested) emitted.push_back((*harvested)->targets[0]);
  }
  EXPECT_EQ(emitted, expected);
}

TEST(Tiny, SequencesOfOneModelAreIndependent) {
  const auto target = tiny_target({});
  const auto a = make_sequence(*target);
  const auto b = make_sequence(*target);
  const std::vector<uint32_t> ids_a = some_ids(7), ids_b = some_ids(12);
  const std::vector<uint32_t> alone_a = greedy(*a, ids_a, 5), alone_b = greedy(*b, ids_b, 5);
  ASSERT_TRUE(a->prefill(0, ids_a, {.max_tokens = 5}));
  ASSERT_TRUE(b->prefill(0, ids_b, {.max_tokens = 5}));
  std::vector<uint32_t> mixed_a, mixed_b;
  for (int round = 0; round < 5; ++round) {
    mixed_a.push_back((*a->harvest(true))->targets[0]);
    ASSERT_TRUE(a->decode());
    mixed_b.push_back((*b->harvest(true))->targets[0]);
    ASSERT_TRUE(b->decode());
  }
  EXPECT_EQ(mixed_a, alone_a);
  EXPECT_EQ(mixed_b, alone_b);
}

TEST(Tiny, SharingLayersLeaveTheDonorsKvAsItIs) {
  const auto target = tiny_target({.capacity = {.kv = ops::KvType::f32}});
  const auto sequence = make_sequence(*target);
  const spec::Config& config = target->config();
  const std::vector<uint32_t> ids = some_ids(10);
  greedy(*sequence, ids, 1);
  // `score` runs the owning layers on all rows as prefill does, and then the sharing layers on all
  // rows as well.
  std::map<uint32_t, model::KvRows> before;
  for (uint32_t i = 0; i < config.owning_layers(); ++i) before[i] = *sequence->kv(i, 2, 10);
  all_logits(*sequence, ids);
  for (uint32_t i = 0; i < config.layers.size(); ++i) {
    const auto after = sequence->kv(i, 2, 10);
    ASSERT_TRUE(after);
    EXPECT_TRUE(same_bits(after->keys, before[config.layers[i].kv_layer].keys)) << i;
    EXPECT_TRUE(same_bits(after->values, before[config.layers[i].kv_layer].values)) << i;
  }
}

TEST(Tiny, GarbageInScratchChangesNothing) {
  const auto target = tiny_target({});
  const auto sequence = make_sequence(*target);
  const std::vector<uint32_t> ids = some_ids(11);
  const std::vector<uint32_t> expected = greedy(*sequence, ids, 6);
  const std::vector<float> logits = *sequence->logits();
  const std::vector<float> scored = all_logits(*sequence, ids);
  const auto poison = [&] {
    for (const auto& [name, buffer] : target->scratch()) {
      if (name.starts_with("angles")) continue;
      const std::vector<float> garbage(buffer.bytes() / 4, std::numeric_limits<float>::quiet_NaN());
      ASSERT_TRUE(target->device().write(buffer.view(), std::as_bytes(std::span(garbage)))) << name;
    }
  };
  poison();
  EXPECT_TRUE(same_bits(all_logits(*sequence, ids), scored));
  poison();
  ASSERT_TRUE(sequence->prefill(0, ids, {.max_tokens = 6}));
  for (uint32_t expected_id : expected) {
    EXPECT_EQ((*sequence->harvest(true))->targets[0], expected_id);
    poison();
    ASSERT_TRUE(sequence->decode());
  }
  poison();
  EXPECT_EQ(greedy(*sequence, ids, 6), expected);
  EXPECT_TRUE(same_bits(*sequence->logits(), logits));
}

TEST(Tiny, OnePassGivesTheBitsOfOnePassPerDispatch) {
  const auto one = tiny_target({.passes = gpu::Passes::one_per_submission});
  const auto many = tiny_target({.passes = gpu::Passes::one_per_dispatch});
  const auto in_one = make_sequence(*one), in_many = make_sequence(*many);
  const std::vector<uint32_t> ids = some_ids(19);
  EXPECT_TRUE(same_bits(all_logits(*in_one, ids), all_logits(*in_many, ids))) << "score";
  EXPECT_TRUE(same_bits(logits_after(*in_one, ids), logits_after(*in_many, ids))) << "prefill";
  EXPECT_EQ(greedy(*in_one, ids, 20), greedy(*in_many, ids, 20));
  EXPECT_TRUE(same_bits(*in_one->logits(), *in_many->logits())) << "decode";
}

TEST(Tiny, SingleRowsByTheRouteForSeveralHaveTheSameBits) {
  const auto own = tiny_target({});
  const auto forced = tiny_target({.force_few_rows = true});
  const auto in_own = make_sequence(*own), in_forced = make_sequence(*forced);
  EXPECT_GT(own->shapes_tried(), 0u);
  EXPECT_EQ(own->shapes_different(), 0u);
  EXPECT_EQ(forced->shapes_different(), own->shapes_tried());
  const std::vector<uint32_t> ids = some_ids(13);
  EXPECT_EQ(greedy(*in_own, ids, 12), greedy(*in_forced, ids, 12));
  EXPECT_TRUE(same_bits(*in_own->logits(), *in_forced->logits()));
}

TEST(Tiny, ProductsRunAsTheyAreCut) {
  const auto target = tiny_target({});
  const std::vector<uint32_t> ids = some_ids(13);
  const std::vector<float> by_the_rules = logits_after(*make_sequence(*target), ids);
  ASSERT_FALSE(target->products().empty());
  EXPECT_EQ(target->shapes_tuned(), 0u);
  ops::Tilings tilings;
  for (const auto& [shape, product] : target->products()) {
    tilings[shape] = {.lanes = 4, .workgroup = 256, .ahead = 2};
  }
  target->set_tilings(tilings);
  const auto sequence = expect_value(model::TargetSequence::make(*target));
  EXPECT_TRUE(expect_value(sequence->prepare(true)));
  EXPECT_EQ(target->shapes_tuned(), target->products().size());
  EXPECT_GT(target->shapes_tried(), 0u);
  EXPECT_EQ(target->shapes_different(), 0u);
  uint32_t products = 0;
  for (const gpu::CommandList* list : sequence->method("decode")) {
    for (const gpu::DispatchInfo& dispatch : list->dispatches()) {
      if (!dispatch.kernel.starts_with("linear_row")) continue;
      ++products;
      EXPECT_TRUE(dispatch.kernel.ends_with("lanes=4")) << dispatch.kernel;
    }
  }
  EXPECT_GT(products, 0u);
  EXPECT_TRUE(close(logits_after(*sequence, ids), by_the_rules, 1e-5));
}

TEST(Tiny, ASequenceIsPreparedAndHarvestedWithoutWaiting) {
  const auto target = tiny_target({});
  const auto waited = make_sequence(*target);
  const auto fresh = tiny_target({});
  const auto polled = expect_value(fresh->new_sequence());
  while (!expect_value(polled->prepare(false))) std::this_thread::yield();
  EXPECT_TRUE(expect_value(polled->prepare(false))) << "it stays prepared";
  const std::vector<uint32_t> ids = some_ids(13);
  const std::vector<uint32_t> expected = greedy(*waited, ids, 6);
  ASSERT_TRUE(accepted(polled->prefill(0, ids, {.max_tokens = 6})));
  std::vector<uint32_t> tokens;
  while (tokens.size() < 6) {
    if (polled->in_flight() == 0) {
      ASSERT_TRUE(accepted(polled->decode()));
    }
    const auto round = expect_value(polled->harvest(false));
    if (round) tokens.push_back(round->targets[0]);
  }
  EXPECT_EQ(tokens, expected);
}

TEST(Tiny, RequestsThatDoNotFitAreRefused) {
  const auto target = tiny_target({});
  const auto sequence = make_sequence(*target);
  const auto code = [](const auto& result) {
    return result ? std::string() : std::string(name(result.error().code));
  };
  EXPECT_EQ(code(sequence->decode()), "invalid_argument") << "before a prefill";
  EXPECT_EQ(code(sequence->prefill(0, {}, {})), "invalid_argument");
  EXPECT_EQ(code(sequence->prefill(0, some_ids(context + 1), {})), "context_exceeded");
  EXPECT_EQ(code(sequence->prefill(context, some_ids(1), {})), "context_exceeded");
  EXPECT_EQ(code(sequence->prefill(0, some_ids(2), {.max_tokens = 0})), "invalid_argument");
  EXPECT_EQ(code(sequence->prefill(0, some_ids(2), {.stop_ids = std::vector<uint32_t>(64)})),
            "invalid_argument");
  const std::vector<uint32_t> unknown{1, tiny_model().config.vocabulary};
  EXPECT_EQ(code(sequence->prefill(0, unknown, {})), "malformed_text");
  EXPECT_EQ(code(sequence->kv(0, 0, context + 1)), "invalid_argument");
  EXPECT_EQ(code(sequence->kv(99, 0, 1)), "invalid_argument");
  EXPECT_EQ(greedy(*sequence, some_ids(context), 5).size(), 1u)
      << "a prompt that fills the context";
}

TEST(Tiny, SharingLayersOfPrefillRunOnOneRow) {
  const auto target = tiny_target({.capacity = {.input_bound = 16}});
  const auto sequence = model::TargetSequence::make(*target);
  ASSERT_TRUE(sequence) << sequence.error().message;
  const auto tiled_products = [&](std::string_view method) {
    uint32_t count = 0;
    for (const gpu::CommandList* list : (*sequence)->method(method)) {
      for (const gpu::DispatchInfo& dispatch : list->dispatches()) {
        if (dispatch.kernel.starts_with("linear_tiled")) ++count;
      }
    }
    return count;
  };
  // Six products a layer, and one for all per-layer inputs; score has the head besides.
  const spec::Config& config = target->config();
  EXPECT_EQ(tiled_products("prefill"), 6 * config.owning_layers() + 1);
  EXPECT_EQ(tiled_products("score"), 6 * config.layers.size() + 2);
  EXPECT_EQ(tiled_products("decode"), 0u);
}

TEST(Tiny, ATurnGoesOnAsAFreshRunWould) {
  // A turn ends with KV for every token but the last, whatever ran ahead; the next one starts with
  // that token. Prompts of all lengths put the end at every slot of the ring.
  const auto target =
      tiny_target({.capacity = {.input_bound = 5, .kv = ops::KvType::f32, .rounds_in_flight = 6}});
  const auto sequence = make_sequence(*target);
  const auto fresh = make_sequence(*target);
  const std::vector<uint32_t> next = some_ids(3);
  for (uint32_t length = 4; length < 20; ++length) {
    std::vector<uint32_t> ids = some_ids(length);
    ASSERT_TRUE(sequence->prefill(0, ids, {.max_tokens = 40}));
    for (int round = 0; round < 6; ++round) ASSERT_TRUE(sequence->decode());
    for (int round = 0; round < 2; ++round) ids.push_back((*sequence->harvest(true))->targets[0]);
    const uint32_t position = static_cast<uint32_t>(ids.size()) - 1;
    ids.insert(ids.end(), next.begin(), next.end());
    const std::vector<uint32_t> turn(ids.begin() + position, ids.end());
    EXPECT_EQ(greedy(*sequence, turn, 6, position), greedy(*fresh, ids, 6)) << length;
    EXPECT_TRUE(close(*sequence->logits(), *fresh->logits(), 1e-4)) << length;
  }
}

TEST(Tiny, SampledTokensAreTheReferencesOfTheirLogits) {
  const auto target = tiny_target({.capacity = {.kv = ops::KvType::f32}});
  const auto sequence = make_sequence(*target);
  const std::pair<SampleOptions, std::vector<TokenBias>> cases[] = {
      {{.temperature = 1, .seed = 1}, {}},
      {{.temperature = 0.7f, .top_k = 5, .seed = 1ull << 40}, {}},
      {{.temperature = 2, .min_p = 0.05f, .seed = 3}, {{5, -1e9f}, {9, 2}}},
      {{.temperature = 1.5f, .repetition_penalty = 1.4f, .penalty_window = 4, .seed = 4}, {}},
      {{.temperature = 0, .repetition_penalty = 1.6f}, {}},
      {{.temperature = 0}, {{7, 50}}},
  };
  for (const auto& [sampling, biases] : cases) {
    std::vector<uint32_t> ids = some_ids(9);
    ASSERT_TRUE(
        sequence->prefill(0, ids, {.max_tokens = 12, .sampling = sampling, .biases = biases}));
    for (int round = 0; round < 12; ++round) {
      const uint32_t token = (*sequence->harvest(true))->targets[0];
      EXPECT_EQ(token, ops::sample_reference(sampling, biases, ids, *sequence->logits()))
          << "seed " << sampling.seed << ", round " << round;
      ids.push_back(token);
      ASSERT_TRUE(sequence->decode());
    }
  }
}

TEST(Tiny, APrefillStartsOnlyWhereTheRingKeepsWhatItReads) {
  const auto target = tiny_target({.capacity = {.input_bound = 4, .kv = ops::KvType::f32}});
  const auto reference =
      make_model(tiny_model(), Place::cpu, {.context = context, .input_bound = 4});
  for (model::Model* model : {static_cast<model::Model*>(target.get()), reference.get()}) {
    const auto sequence = make_sequence(*model);
    const std::vector<uint32_t> ids = some_ids(30);
    EXPECT_FALSE(sequence->keeps(1)) << "nothing is written yet";
    greedy(*sequence, ids, 1);
    // 30 positions in a ring of 13 slots hold the last 13; position p reads from p - 8 on.
    EXPECT_FALSE(sequence->keeps(24));
    EXPECT_TRUE(sequence->keeps(25));
    EXPECT_TRUE(sequence->keeps(30));
    EXPECT_FALSE(sequence->keeps(31));
    const auto lost = sequence->prefill(24, some_ids(1), {});
    ASSERT_FALSE(lost);
    EXPECT_EQ(name(lost.error().code), "invalid_argument");
    const auto fresh = make_sequence(*model);
    const std::vector<uint32_t> again(ids.begin() + 25, ids.end());
    EXPECT_EQ(greedy(*sequence, again, 6, 25), greedy(*fresh, ids, 6));
    greedy(*sequence, some_ids(3), 1);
    EXPECT_TRUE(sequence->keeps(2)) << "a new start forgets what was written";
    EXPECT_FALSE(sequence->keeps(9));
  }
}

TEST(Tiny, AfterAnotherPromptTheBitsAreThoseOfAFreshSequence) {
  const auto target = tiny_target({.capacity = {.input_bound = 5}});
  const auto used = make_sequence(*target), fresh = make_sequence(*target);
  greedy(*used, some_ids(40), 20);
  std::vector<uint32_t> ids = some_ids(17);
  std::reverse(ids.begin(), ids.end());
  const auto rounds = [&](model::Sequence& sequence) {
    EXPECT_TRUE(
        sequence.prefill(0, ids, {.max_tokens = 10, .sampling = {.temperature = 1, .seed = 5}}));
    std::vector<std::pair<uint32_t, std::vector<float>>> tokens_and_logits;
    for (int round = 0; round < 10; ++round) {
      tokens_and_logits.push_back({(*sequence.harvest(true))->targets[0], *sequence.logits()});
      EXPECT_TRUE(sequence.decode());
    }
    return tokens_and_logits;
  };
  EXPECT_EQ(rounds(*used), rounds(*fresh));
}

TEST(Tiny, LogitsThatAreNoNumbersAreAnError) {
  for (const Place place : {Place::cpu, Place::gpu_f16}) {
    const auto model = make_model(tiny_model(), place, {.context = context});
    const float nan = std::numeric_limits<float>::quiet_NaN();
    ASSERT_TRUE(model->write("final_norm.values", 8, std::as_bytes(std::span(&nan, 1))));
    const auto sequence = make_sequence(*model);
    for (const float temperature : {0.0f, 1.0f}) {
      const model::Request request{.max_tokens = 4, .sampling = {.temperature = temperature}};
      ASSERT_TRUE(sequence->prefill(0, some_ids(5), request));
      const auto round = sequence->harvest(true);
      ASSERT_FALSE(round) << name(place) << ", temperature " << temperature;
      EXPECT_EQ(name(round.error().code), "not_finite");
    }
  }
}

TEST(Tiny, GenerationsMakeNoBuffersAndNoKernels) {
  const auto target = tiny_target({});
  const auto sequence = make_sequence(*target);
  const std::vector<uint32_t> ids = some_ids(9);
  greedy(*sequence, ids, 4);
  const gpu::Census after_one = target->device().census();
  for (uint32_t generation = 2; generation <= 20; ++generation) {
    greedy(*sequence, some_ids(generation), 3);
  }
  const gpu::Census after_twenty = target->device().census();
  EXPECT_EQ(after_twenty.buffers, after_one.buffers);
  EXPECT_EQ(after_twenty.buffer_bytes, after_one.buffer_bytes);
  EXPECT_EQ(after_twenty.kernels, after_one.kernels);
}

TEST(Tiny, ALostDeviceEndsItsSequencesAndANewOneWorks) {
  const std::vector<uint32_t> ids = some_ids(9);
  std::vector<uint32_t> expected;
  {
    const auto device = open_device();
    const auto target = make_target(tiny_model(), *device, {.capacity = {.context = context}});
    const auto sequence = make_sequence(*target);
    expected = greedy(*sequence, ids, 4);
    ASSERT_TRUE(sequence->prefill(0, ids, {.max_tokens = 30}));
    ASSERT_TRUE(sequence->decode());
    device->lose();
    const auto decoded = sequence->decode();
    ASSERT_FALSE(decoded);
    EXPECT_EQ(name(decoded.error().code), "device_lost");
    const auto prefilled = sequence->prefill(0, ids, {.max_tokens = 1});
    ASSERT_FALSE(prefilled);
    EXPECT_EQ(name(prefilled.error().code), "device_lost");
  }
  const auto device = open_device();
  const auto target = make_target(tiny_model(), *device, {.capacity = {.context = context}});
  const auto sequence = make_sequence(*target);
  EXPECT_EQ(greedy(*sequence, ids, 4), expected);
}

TEST(Tiny, ThetaOfTheConfigIsUsed) {
  HashModel other = tiny_model();
  for (spec::Layer& layer : other.config.layers) layer.rope.theta *= 2;
  const auto target = make_target(other, test_device(), {.capacity = {.context = context}});
  const auto sequence = make_sequence(*target);
  const auto original = tiny_target({});
  const auto original_sequence = make_sequence(*original);
  const std::vector<uint32_t> ids = some_ids(12);
  EXPECT_FALSE(close(logits_after(*sequence, ids), logits_after(*original_sequence, ids), 1e-4));
}

}  // namespace
}  // namespace tandem::test
