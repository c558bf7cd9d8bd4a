// Random-weight models of other geometries against transformers: of Gemma 4 E2B's layers, 2 KV
// heads, k_eq_v and a scaled E2B (tests/golden/geometry.*), of Gemma 3 a scaled one with all its
// features and the layers of 270M (tests/golden/gemma3.*). Their weights are made from a hash.

#include <gtest/gtest.h>

#include "model/models.h"
#include "support/compare.h"
#include "support/golden.h"

namespace tandem::test {
namespace {

const Golden& golden_of(std::string_view name) {
  static const Golden gemma4("geometry");
  static const Golden gemma3("gemma3");
  return name.starts_with("gemma3") ? gemma3 : gemma4;
}

using Case = std::tuple<std::string, Place>;
class Geometry : public ::testing::TestWithParam<Case> {};

// Rows `positions` of [rows][width].
std::vector<float> pick(const std::vector<float>& rows, const std::vector<uint32_t>& positions,
                        size_t width) {
  std::vector<float> picked;
  for (uint32_t position : positions) {
    const auto row = rows.begin() + static_cast<ptrdiff_t>(position * width);
    picked.insert(picked.end(), row, row + static_cast<ptrdiff_t>(width));
  }
  return picked;
}

TEST_P(Geometry, HiddenStatesAndLogits) {
  const auto& [wanted, place] = GetParam();
  const Golden& golden = golden_of(wanted);
  for (const auto& entry : golden.index().at("cases")) {
    if (entry.at("name") != wanted) continue;
    const auto config = spec::read_config(entry.at("config").dump(), wanted);
    ASSERT_TRUE(config) << config.error().message;
    const HashModel weights{*config, entry.at("seed")};
    const auto model = make_model(weights, place, {.context = 64});
    const auto sequence = make_sequence(*model);
    const std::vector<uint32_t> ids = golden.ids(wanted + ".ids");
    const std::vector<uint32_t> positions = entry.at("positions");
    std::map<std::string, std::vector<float>, std::less<>> traced;
    const auto scored = sequence->score(
        ids,
        [&](uint32_t, std::span<const float> logits) -> Result<void> {
          std::vector<float>& rows = traced["logits"];
          rows.insert(rows.end(), logits.begin(), logits.end());
          return {};
        },
        [&](std::string_view what, uint32_t, std::span<const float> values) {
          std::vector<float>& rows = traced[std::string(what)];
          rows.insert(rows.end(), values.begin(), values.end());
        });
    ASSERT_TRUE(scored) << scored.error().message;
    const double bound = tolerance(place);
    const std::vector<float> hidden = golden.floats(wanted + ".hidden");
    const size_t layer_size = positions.size() * config->hidden;
    for (size_t layer = 0; layer < config->layers.size(); ++layer) {
      EXPECT_TRUE(close(pick(traced["layer" + std::to_string(layer)], positions, config->hidden),
                        std::span(hidden).subspan(layer * layer_size, layer_size), bound))
          << "layer " << layer;
    }
    EXPECT_TRUE(close(pick(traced["final"], positions, config->hidden),
                      golden.floats(wanted + ".final"), bound));
    EXPECT_TRUE(close(pick(traced["logits"], positions, config->vocabulary),
                      golden.floats(wanted + ".logits"), bound));
    EXPECT_TRUE(close(logits_after(*sequence, ids),
                      std::span<const float>(traced["logits"]).last(config->vocabulary), 2 * bound))
        << "prefill against score";
    return;
  }
  FAIL() << "no such case";
}

INSTANTIATE_TEST_SUITE_P(
    Cases, Geometry,
    ::testing::Combine(::testing::Values("e2b_layers", "e4b_like", "k_eq_v", "e2b_scaled",
                                         "gemma3_scaled", "gemma3_270m_layers"),
                       ::testing::Values(Place::cpu, Place::gpu_f32, Place::gpu_f16)),
    [](const auto& param_info) {
      return std::get<0>(param_info.param) + "_" + name(std::get<1>(param_info.param));
    });

}  // namespace
}  // namespace tandem::test
