// Int8 activations of the atlas against Hugging Face transformers whose products read what
// ops/quantize/quantize.h defines (tests/golden/int8.*; docs/testing.md says how near results can
// be).
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "model/models.h"
#include "ops/quantize/quantize.h"
#include "support/compare.h"
#include "support/device.h"
#include "support/golden.h"

namespace tandem::test {
namespace {

// Where another order of sums takes a value to the other side of a half, a row strays this far.
constexpr double stray = 2e-2;

const Golden& golden() {
  static const Golden golden("int8");
  return golden;
}

model::Model& atlas_at(Place place) {
  // Never destroyed: the device that they need may go first.
  static auto& models = *new std::map<Place, std::unique_ptr<model::Model>>();
  auto& model = models[place];
  if (!model) {
    model = make_model(atlas(), place,
                       {.context = 512, .input_bound = 128, .activations = ops::Activations::int8});
  }
  return *model;
}

// A KV cache in f16 moves values over a half too.
class Int8Steady : public ::testing::TestWithParam<Place> {};
class Int8 : public ::testing::TestWithParam<Place> {};

std::string place_name(const ::testing::TestParamInfo<Place>& place) { return name(place.param); }
INSTANTIATE_TEST_SUITE_P(Places, Int8Steady, ::testing::Values(Place::cpu, Place::gpu_f32),
                         place_name);
INSTANTIATE_TEST_SUITE_P(Places, Int8, ::testing::Values(Place::cpu, Place::gpu_f16), place_name);

// Hidden states and logits of ids that the golden file has under `prefix`, of which no value lies
// near a half, so that results are as near as those of f32.
void expect_steady(model::Model& model, const std::string& prefix, Place place) {
  const auto sequence = make_sequence(model);
  std::map<std::string, std::vector<float>, std::less<>> traced;
  std::vector<float> logits;
  ASSERT_TRUE(sequence->score(
      golden().ids(prefix + ".ids"),
      [&](uint32_t, std::span<const float> rows) -> Result<void> {
        logits.insert(logits.end(), rows.begin(), rows.end());
        return {};
      },
      [&](std::string_view what, uint32_t, std::span<const float> values) {
        traced[std::string(what)].assign(values.begin(), values.end());
      }));
  EXPECT_TRUE(close(logits, golden().floats(prefix + ".logits"), tolerance(place)));
  for (auto& [what, values] : traced) {
    if (what == "embed" || what == "per_layer_inputs") continue;
    std::vector<float> expected = golden().floats(prefix + ".hidden." + what);
    // What the head reads.
    if (what == "final") ops::quantize_reference(model.config().hidden, expected);
    EXPECT_TRUE(close(values, expected, tolerance(place))) << what;
  }
}

TEST_P(Int8Steady, PromptIsThatOfTransformers) {
  expect_steady(atlas_at(GetParam()), "steady", GetParam());
}

// With heads of 16 columns, half a unit, and a table of Q8_0.
TEST_P(Int8Steady, SmallModelIsThatOfTransformers) {
  const nlohmann::json& small = golden().index().at("small");
  const GridModel model{*spec::read_config(small.at("config").dump(), "small"), small.at("seed")};
  const auto made = make_model(
      model, GetParam(), {.context = 32, .input_bound = 32, .activations = ops::Activations::int8});
  expect_steady(*made, "small", GetParam());
}

// Where only some matrices are quantized, each product finds its rows in the format that it reads.
TEST(Int8Mixed, WithSomeMatricesOfF32TheDeviceIsTheReference) {
  const nlohmann::json& small = golden().index().at("small");
  const std::vector<uint32_t> ids = golden().ids("small.ids");
  for (const char* floats : {"qkv", "output", "gate_up", "down"}) {
    const GridModel model{*spec::read_config(small.at("config").dump(), "small"), small.at("seed"),
                          floats};
    const auto logits = [&](Place place) {
      const auto made = make_model(
          model, place, {.context = 32, .input_bound = 32, .activations = ops::Activations::int8});
      const auto sequence = make_sequence(*made);
      std::vector<float> all = logits_after(*sequence, ids);
      const std::vector<float> one =
          logits_after(*sequence, std::span(ids).first(1), static_cast<uint32_t>(ids.size()));
      all.insert(all.end(), one.begin(), one.end());
      return all;
    };
    EXPECT_TRUE(close(logits(Place::gpu_f32), logits(Place::cpu), stray)) << floats;
  }
}

// Decode's kernels for few rows, and prefill's for many.
TEST_P(Int8Steady, RowByRowIsThePrompt) {
  const auto sequence = make_sequence(atlas_at(GetParam()));
  const std::vector<uint32_t> ids = golden().ids("steady.ids");
  const size_t vocabulary = atlas().config.vocabulary;
  const std::vector<float> expected = golden().floats("steady.logits");
  for (size_t i = 0; i < ids.size(); ++i) {
    const std::vector<float> logits =
        logits_after(*sequence, std::span(ids).subspan(i, 1), static_cast<uint32_t>(i));
    EXPECT_TRUE(close(logits, std::span(expected).subspan(i * vocabulary, vocabulary),
                      tolerance(GetParam())))
        << i;
  }
}

TEST_P(Int8, PromptsAreThoseOfTransformers) {
  const auto sequence = make_sequence(atlas_at(GetParam()));
  const size_t vocabulary = atlas().config.vocabulary;
  for (const char* prompt : {"short", "profile"}) {
    const std::string prefix = prompt;
    const std::vector<uint32_t> ids = golden().ids(prefix + ".ids");
    const std::vector<float> rows = golden().floats(prefix + ".logits");
    const std::span<const float> expected = std::span(rows).last(vocabulary);
    EXPECT_TRUE(close(logits_after(*sequence, ids), expected, stray)) << prompt;
    const std::vector<float> in_f32 = Golden("target").floats(prefix + ".logits");
    EXPECT_FALSE(close(std::span(in_f32).last(vocabulary), expected, 1e-3)) << prompt;
    // Up to the first token that such a difference may change.
    const std::vector<float> top2 = golden().floats(prefix + ".top2_logits");
    std::vector<uint32_t> greedy_ids = golden().ids(prefix + ".greedy");
    size_t sure = 0;
    while (sure < greedy_ids.size() && top2[2 * sure] - top2[2 * sure + 1] >= 1) ++sure;
    greedy_ids.resize(sure);
    ASSERT_GT(sure, 0u);
    EXPECT_EQ(greedy(*sequence, ids, static_cast<uint32_t>(sure)), greedy_ids) << prompt;
  }
}

// The mean of -log p of the tokens of a text.
double mean_loss(std::span<const float> logits, std::span<const uint32_t> ids) {
  const size_t vocabulary = atlas().config.vocabulary;
  double sum = 0;
  for (size_t i = 0; i + 1 < ids.size(); ++i) {
    const std::span<const float> row = logits.subspan(i * vocabulary, vocabulary);
    double total = 0;
    for (float logit : row) total += std::exp(double{logit});
    sum += std::log(total) - double{row[ids[i + 1]]};
  }
  return sum / static_cast<double>(ids.size() - 1);
}

TEST_P(Int8, ATextIsAsLikelyAsInF32) {
  const auto sequence = make_sequence(atlas_at(GetParam()));
  const std::vector<uint32_t> ids = golden().ids("long.ids");
  const nlohmann::json& text = golden().index().at("texts").at(0);
  ASSERT_EQ(text.at("text"), "long");
  const double loss = mean_loss(all_logits(*sequence, ids), ids);
  EXPECT_NEAR(loss, text.at("mean_nll").get<double>(), 3e-3);
  // In perplexity 0.5 %, which is what int8 may cost.
  EXPECT_NEAR(loss, text.at("mean_nll_f32").get<double>(), 5e-3);
}

}  // namespace
}  // namespace tandem::test
