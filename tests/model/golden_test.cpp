// The atlas against Hugging Face transformers (tests/golden/target.*): every tensor within the
// tolerance of its place, and every greedy continuation token for token.

#include "support/golden.h"

#include <gtest/gtest.h>

#include <cmath>

#include "model/models.h"
#include "support/compare.h"

namespace tandem::test {
namespace {

const Golden& golden() {
  static const Golden golden("target");
  return golden;
}

// One model for each place, made when first asked for.
model::Model& atlas_at(Place place) {
  // Never destroyed: the device that they need may go first.
  static auto& models = *new std::map<Place, std::unique_ptr<model::Model>>();
  auto& model = models[place];
  if (!model) model = make_model(atlas(), place, {.context = 512, .input_bound = 128});
  return *model;
}

using Case = std::tuple<Place, std::string>;

std::string case_name(const ::testing::TestParamInfo<Case>& info) {
  return name(std::get<0>(info.param)) + "_" + std::get<1>(info.param);
}

class TargetGolden : public ::testing::TestWithParam<Case> {
 protected:
  Place place() const { return std::get<0>(GetParam()); }
  std::string prompt() const { return std::get<1>(GetParam()); }
  std::vector<uint32_t> ids() const { return golden().ids(prompt() + ".ids"); }
};

std::vector<uint32_t> logit_positions(const std::string& prompt) {
  for (const auto& entry : golden().index().at("prompts")) {
    if (entry.at("name") == prompt) return entry.at("logit_positions");
  }
  return {};
}

TEST_P(TargetGolden, LogitsOfScoreAndOfPrefill) {
  const auto sequence = make_sequence(atlas_at(place()));
  const uint32_t vocabulary = atlas().config.vocabulary;
  const std::vector<float> expected = golden().floats(prompt() + ".logits");
  const std::vector<float> scored = all_logits(*sequence, ids());
  const std::vector<uint32_t> positions = logit_positions(prompt());
  ASSERT_EQ(expected.size(), positions.size() * vocabulary);
  for (size_t i = 0; i < positions.size(); ++i) {
    EXPECT_TRUE(close(std::span(scored).subspan(positions[i] * vocabulary, vocabulary),
                      std::span(expected).subspan(i * vocabulary, vocabulary), tolerance(place())))
        << "position " << positions[i];
  }
  EXPECT_TRUE(close(logits_after(*sequence, ids()), std::span(expected).last(vocabulary),
                    tolerance(place())));
}

TEST_P(TargetGolden, GreedyContinuation) {
  const auto sequence = make_sequence(atlas_at(place()));
  const std::vector<uint32_t> expected = golden().ids(prompt() + ".greedy");
  EXPECT_EQ(greedy(*sequence, ids(), static_cast<uint32_t>(expected.size())), expected);
}

INSTANTIATE_TEST_SUITE_P(Prompts, TargetGolden,
                         ::testing::Combine(::testing::Values(Place::cpu, Place::gpu_f32,
                                                              Place::gpu_f16),
                                            ::testing::Values("short", "long", "non_latin", "empty",
                                                              "profile", "multi_turn")),
                         case_name);

class ShortPrompt : public ::testing::TestWithParam<Place> {};

TEST_P(ShortPrompt, HiddenStatesOfEveryLayer) {
  const auto sequence = make_sequence(atlas_at(GetParam()));
  const std::vector<uint32_t> ids = golden().ids("short.ids");
  ASSERT_LE(ids.size(), 32u) << "one band, so that one call of the trace holds all rows";
  const size_t layers = atlas().config.layers.size();
  const size_t width = atlas().config.per_layer_input;
  std::map<std::string, std::vector<float>, std::less<>> traced;
  ASSERT_TRUE(sequence->score(
      ids, [](uint32_t, std::span<const float>) -> Result<void> { return {}; },
      [&](std::string_view what, uint32_t, std::span<const float> values) {
        std::vector<float>& kept = traced[std::string(what)];
        kept.assign(values.begin(), values.end());
        if (what != "per_layer_inputs") return;
        for (size_t i = 0; i < values.size(); ++i) {
          const size_t layer = i / (ids.size() * width), row = i / width % ids.size();
          kept[(row * layers + layer) * width + i % width] = values[i];
        }
      }));
  ASSERT_EQ(traced.size(), layers + 3);
  for (const auto& [what, values] : traced) {
    EXPECT_TRUE(close(values, golden().floats("short.hidden." + what), tolerance(GetParam())))
        << what;
  }
}

TEST_P(ShortPrompt, KeysAndValuesOfTheDonorLayers) {
  const auto sequence = make_sequence(atlas_at(GetParam()));
  const std::vector<uint32_t> ids = golden().ids("short.ids");
  greedy(*sequence, ids, 1);
  for (const auto& [layer, kind] : {std::pair{5u, "sliding_attention"}, {4u, "full_attention"}}) {
    const auto rows = sequence->kv(layer, 0, static_cast<uint32_t>(ids.size()));
    ASSERT_TRUE(rows) << rows.error().message;
    const std::string prefix = std::string("short.kv.") + kind;
    EXPECT_TRUE(close(rows->keys, golden().floats(prefix + ".key"), tolerance(GetParam()))) << kind;
    EXPECT_TRUE(close(rows->values, golden().floats(prefix + ".value"), tolerance(GetParam())))
        << kind;
  }
}

INSTANTIATE_TEST_SUITE_P(Places, ShortPrompt,
                         ::testing::Values(Place::cpu, Place::gpu_f32, Place::gpu_f16),
                         [](const auto& param_info) { return name(param_info.param); });

// Prompts of several chunks and windows: the reference's tokens, and finite logits.
TEST(LongPrompts, OnTheGpuGiveTheReferencesTokens) {
  std::vector<uint32_t> text = golden().ids("long.ids");
  while (text.size() < 1200) text.insert(text.end(), text.begin() + 1, text.begin() + 308);
  const model::Capacity capacity{.context = 1300};
  const auto on_gpu = make_model(atlas(), Place::gpu_f16, capacity);
  const auto on_cpu = make_model(atlas(), Place::cpu, capacity);
  const auto gpu = make_sequence(*on_gpu), cpu = make_sequence(*on_cpu);
  for (size_t length : {600, 1200}) {
    const std::span<const uint32_t> prompt = std::span<const uint32_t>(text).first(length);
    EXPECT_EQ(greedy(*gpu, prompt, 16), greedy(*cpu, prompt, 16)) << length;
    const std::vector<float> logits = *gpu->logits();
    for (float logit : logits) ASSERT_TRUE(std::isfinite(logit)) << length;
  }
}

}  // namespace
}  // namespace tandem::test
