// Sampling by a plain sort, with probabilities in double.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "ops/sample/noise.h"
#include "ops/sample/sample.h"

namespace tandem::ops {
namespace {

// Penalty, bias and temperature, with the kernel's rounding.
std::vector<float> adjust(const SampleSettings& settings, std::span<const TokenBias> biases,
                          std::span<const uint32_t> tokens, std::span<const float> logits) {
  std::vector<float> values(logits.begin(), logits.end());
  for (float& value : values) value = std::clamp(value, -1e20f, 1e20f);
  if (settings.penalty != 1) {
    const size_t window = std::min<size_t>(tokens.size(), settings.penalty_window);
    std::vector<bool> penalized(values.size());
    for (uint32_t token : tokens.last(window)) {
      if (token >= values.size() || penalized[token]) continue;
      penalized[token] = true;
      values[token] *= values[token] < 0 ? settings.penalty : settings.inverse_penalty;
    }
  }
  for (const TokenBias& bias : biases) values[bias.token] += bias.bias;
  for (float& value : values) value *= settings.scale;
  return values;
}

// The least of the values, sorted from the top, that top-k and top-p keep.
float lowest_kept(const SampleOptions& options, std::span<const float> sorted) {
  const bool top_k = options.top_k > 0 && options.top_k < sorted.size();
  const float floor = top_k ? sorted[options.top_k - 1] : sorted.back();
  if (options.top_p >= 1) return floor;
  std::vector<double> mass;  // of the values through this one
  double total = 0;
  for (float value : sorted) {
    if (value < floor) break;
    total += std::exp2(double{value} - sorted[0]);
    mass.push_back(total);
  }
  const auto enough = std::lower_bound(mass.begin(), mass.end(), double{options.top_p} * total);
  return sorted[std::min<size_t>(enough - mass.begin(), mass.size() - 1)];
}

}  // namespace

uint32_t sample_reference(const SampleOptions& options, std::span<const TokenBias> biases,
                          std::span<const uint32_t> tokens, std::span<const float> logits) {
  const SampleSettings settings = sample_settings(options, biases.size());
  std::vector<float> values = adjust(settings, biases, tokens, logits);
  const auto first_of_largest = [](std::span<const float> scores) {
    return static_cast<uint32_t>(std::max_element(scores.begin(), scores.end()) - scores.begin());
  };
  if (settings.greedy) return first_of_largest(values);

  std::vector<float> sorted = values;
  std::sort(sorted.begin(), sorted.end(), std::greater<>());
  const float largest = sorted[0];
  const float floor = lowest_kept(options, sorted);
  const auto position = static_cast<uint32_t>(tokens.size() - 1);
  for (uint32_t token = 0; token < values.size(); ++token) {
    const float below = values[token] - largest;
    const bool kept = values[token] >= floor && below >= settings.min_p;
    values[token] = kept ? below + sample_noise(options.seed, position, token)
                         : -std::numeric_limits<float>::infinity();
  }
  return first_of_largest(values);
}

}  // namespace tandem::ops
