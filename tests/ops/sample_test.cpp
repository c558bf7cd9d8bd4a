// Sampling on the GPU: token for token against the reference, by hand-worked examples, and against
// the exact distribution.
#include "ops/sample/sample.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>

#include "base/sampling.h"
#include "ops/harness.h"
#include "ops/sample/noise.h"
#include "ops/untouched.h"
#include "support/refusal.h"

namespace tandem::ops {
namespace {

// One step: what is sampled from. The timeline goes on beyond the rows' positions.
struct Request {
  uint32_t columns = 0;
  std::vector<float> logits;  // of all rows
  SampleOptions options = {};
  std::vector<TokenBias> biases = {};
  std::vector<uint32_t> timeline = {};  // padded with zeros to a token for each row
  uint32_t position = 0;
  uint32_t spare_rows = 0;  // live rows fewer than logits

  uint32_t max_rows() const { return static_cast<uint32_t>(logits.size() / columns); }
};

struct Bound {
  Sample op;
  std::vector<gpu::Buffer> buffers;
};

// Every output and scratch buffer is poisoned.
Bound bind(const Request& request) {
  const uint32_t rows = request.max_rows();
  std::vector<uint32_t> timeline = request.timeline;
  timeline.resize(std::max<size_t>(timeline.size(), request.position + rows));
  std::vector<TokenBias> biases = request.biases;
  biases.resize(max_biases, {0, 1e9f});  // what lies beyond the count must not be read
  Bound bound{{.columns = request.columns,
               .context = static_cast<uint32_t>(timeline.size()),
               .max_rows = rows},
              {}};
  const auto keep = [&](gpu::Buffer buffer) {
    bound.buffers.push_back(std::move(buffer));
    return bound.buffers.back().view();
  };
  Sample& op = bound.op;
  op.step =
      keep(test::upload(Step{.position = request.position, .rows = rows - request.spare_rows}));
  op.logits = keep(test::upload(request.logits));
  op.timeline = keep(test::upload(timeline));
  op.settings =
      keep(test::upload(std::vector{sample_settings(request.options, request.biases.size())}));
  op.biases = keep(test::upload(biases));
  op.keys = keep(test::poisoned(sample_keys_bytes(request.columns, rows)));
  op.state = keep(test::poisoned(sample_state_bytes(rows)));
  op.partials = keep(test::poisoned(sample_partials_bytes(request.columns, rows)));
  op.index = keep(test::poisoned(rows * sizeof(uint32_t)));
  return bound;
}

// The tokens of the live rows; what lies beyond must stay poison.
std::vector<uint32_t> sample(const Request& request) {
  EXPECT_TRUE(test::accepted(check_sampling(request.options)));
  EXPECT_TRUE(test::accepted(check_biases(request.biases, request.columns)));
  const Bound bound = bind(request);
  gpu::CommandList commands(test::test_device());
  test::expect_success(record(commands, bound.op));
  test::run(commands, {.rows = bound.op.max_rows});
  auto tokens = test::download_as<uint32_t>(bound.op.index);
  const size_t live = tokens.size() - request.spare_rows;
  EXPECT_TRUE(test::untouched(std::span<const uint32_t>(tokens).subspan(live)));
  tokens.resize(live);
  return tokens;
}

uint32_t reference(const Request& request, uint32_t row, float top_p) {
  SampleOptions options = request.options;
  options.top_p = top_p;
  std::vector<uint32_t> tokens = request.timeline;
  tokens.resize(request.position + row + 1);
  return sample_reference(
      options, request.biases, tokens,
      std::span(request.logits).subspan(size_t{row} * request.columns, request.columns));
}

// Token for token. Where top-p's boundary is closer to a token than the kernel's sums are exact
// (sample.h), both choices are right.
void expect_reference(const Request& request, const char* why) {
  SCOPED_TRACE(fmt::format("{} columns, {}", request.columns, why));
  const std::vector<uint32_t> tokens = sample(request);
  const float top_p = request.options.top_p;
  const float tolerance = 0x1p-18f + 0x1p-31f * static_cast<float>(request.columns);
  for (uint32_t row = 0; row < tokens.size(); ++row) {
    const uint32_t expected = reference(request, row, top_p);
    if (tokens[row] == expected) continue;
    if (top_p < 1 && (tokens[row] == reference(request, row, top_p - tolerance) ||
                      tokens[row] == reference(request, row, top_p + tolerance))) {
      continue;
    }
    ADD_FAILURE() << "row " << row << ": " << tokens[row] << ", expected " << expected;
  }
}

// With many equal values where `ties`.
std::vector<float> random_logits(size_t count, uint32_t seed, float scale, bool ties) {
  std::vector<float> logits = test::random_floats(count, seed, scale);
  if (ties) {
    for (float& logit : logits) logit = std::round(2 * logit) / 2;
  }
  return logits;
}

std::vector<TokenBias> biases_of(uint32_t columns) {
  std::vector<TokenBias> biases;
  for (uint32_t i = 0; i < std::min(columns / 2, max_biases); ++i) {
    biases.push_back({i * (columns / std::min(columns, max_biases)), i % 3 == 0 ? -1e9f : 1.5f});
  }
  return biases;
}

struct Case {
  const char* why;
  SampleOptions options;
  bool biased = false;
  bool at_full_size = false;
};

const Case cases[] = {
    {"greedy", {.temperature = 0}},
    {"greedy with a penalty", {.temperature = 0, .repetition_penalty = 1.3f}},
    {"greedy with a penalty and biases", {.temperature = 0, .repetition_penalty = 2}, true, true},
    {"greedy ignores filters", {.temperature = 0, .top_k = 3, .top_p = 0.2f, .min_p = 0.5f}},
    {"plain", {}, false, true},
    {"low temperature", {.temperature = 1e-3f}},
    {"high temperature", {.temperature = 5}},
    {"top-k 1", {.top_k = 1}},
    {"top-k 3", {.temperature = 2, .top_k = 3}},
    {"top-k 64", {.temperature = 2, .top_k = 64}},
    {"top-k 100000", {.temperature = 5, .top_k = 100000}, false, true},
    {"top-k of all but one", {.temperature = 5, .top_k = 255}},
    {"top-k over the columns", {.top_k = 1u << 30}},
    {"tiny top-p", {.top_p = 1e-6f}},
    {"small top-p", {.temperature = 3, .top_p = 0.05f}},
    {"top-p", {.top_p = 0.9f}},
    {"top-p close to 1", {.temperature = 2, .top_p = 0.99999f}, false, true},
    {"min-p", {.temperature = 2, .min_p = 0.1f}},
    {"min-p 1", {.temperature = 2, .min_p = 1}},
    {"tiny min-p", {.temperature = 2, .min_p = 1e-4f}},
    {"penalty", {.temperature = 0.5f, .repetition_penalty = 1.2f}},
    {"penalty in a window", {.repetition_penalty = 1.7f, .penalty_window = 5}},
    {"penalty in a window past the start",
     {.temperature = 0.5f, .repetition_penalty = 3, .penalty_window = 1000}},
    {"empty window", {.temperature = 0.5f, .repetition_penalty = 3, .penalty_window = 0}},
    {"huge penalty", {.temperature = 0.5f, .repetition_penalty = 1e6f}},
    {"reward", {.repetition_penalty = 0.5f, .penalty_window = 20}},
    {"biases", {}, true},
    {"biases and top-p", {.temperature = 2, .top_p = 0.9f}, true},
    {"Gemma's defaults", {.top_k = 64, .top_p = 0.95f}, false, true},
    {"all filters", {.temperature = 3, .top_k = 100, .top_p = 0.8f, .min_p = 0.2f}},
    {"everything",
     {.temperature = 0.7f,
      .top_k = 40,
      .top_p = 0.9f,
      .min_p = 0.05f,
      .repetition_penalty = 1.1f,
      .penalty_window = 30,
      .seed = 0xfedcba9876543210},
     true,
     true},
};

void expect_cases(uint32_t columns, uint32_t rows, bool ties) {
  constexpr uint32_t position = 40;
  Request request{.columns = columns,
                  .logits = random_logits(size_t{columns} * rows, columns, 12, ties),
                  .position = position,
                  .spare_rows = 1};
  for (float value : test::random_floats(position + rows, 3)) {
    const float within = (value + 1) / 2 * static_cast<float>(std::min(columns, 300u));
    request.timeline.push_back(static_cast<uint32_t>(within) * (columns / std::min(columns, 300u)));
  }
  request.timeline[5] = 0xffffffffu;  // no token
  uint64_t seed = 1;
  for (const Case& c : cases) {
    if (columns > 100000 && !c.at_full_size) continue;
    request.options = c.options;
    if (request.options.seed == 0) request.options.seed = seed++;
    request.biases = c.biased ? biases_of(columns) : std::vector<TokenBias>{};
    expect_reference(request, c.why);
  }
}

TEST(Sample, AgreesWithTheReference) {
  expect_cases(1, 3, false);
  expect_cases(7, 41, false);
  expect_cases(256, 25, false);
  expect_cases(4097, 2, false);
  expect_cases(8192, 2, false);
}

TEST(Sample, AgreesWithTheReferenceOnTies) {
  expect_cases(7, 41, true);
  expect_cases(256, 25, true);
  expect_cases(8192, 2, true);
}

TEST(Sample, AgreesWithTheReferenceOnAFullVocabulary) { expect_cases(262144, 2, false); }

TEST(Sample, AgreesWithTheReferenceOnEqualLogits) {
  for (uint32_t columns : {7u, 5000u, 262144u}) {
    const uint32_t rows = columns > 10000 ? 1 : 5;
    for (float logit : {-3.5f, 1e20f}) {
      if (columns > 10000 && logit > 0) continue;
      Request request{.columns = columns, .logits = std::vector(size_t{columns} * rows, logit)};
      expect_reference(request, "plain");
      request.options = {.top_k = 2, .top_p = 0.3f, .min_p = 1};
      expect_reference(request, "all are kept together");
    }
  }
}

// Logits so close that each kept token is about as likely: one that is wrongly kept or dropped
// shows.
TEST(Sample, KeepsExactlyTheRightOnes) {
  constexpr uint32_t columns = 12;
  constexpr uint32_t rows = 60;
  const auto near = test::random_floats(size_t{rows} * columns, 5, 0.01f);
  for (uint32_t k = 1; k <= columns; ++k) {
    const float share = (static_cast<float>(k) - 0.5f) / columns;
    expect_reference({.columns = columns, .logits = near, .options = {.top_k = k}}, "top-k");
    expect_reference({.columns = columns, .logits = near, .options = {.top_p = share}}, "top-p");
    expect_reference({.columns = columns, .logits = near, .options = {.top_k = k, .top_p = share}},
                     "both");
    expect_reference(
        {.columns = columns, .logits = near, .options = {.min_p = 0.985f + 0.001f * float(k)}},
        "min-p");
  }
}

// One large probability and `others` equal ones that share the rest: top-p keeps the large one
// alone as long as it is enough.
void expect_boundary(double large, uint32_t others, uint32_t rows) {
  Request request{.columns = others + 1, .logits = {}};
  request.logits.resize(size_t{rows} * request.columns);
  for (uint32_t row = 0; row < rows; ++row) {
    request.logits[size_t{row} * request.columns + others / 2] =
        static_cast<float>(std::log(large * others / (1 - large)));
  }
  const auto share_of_large = [&](double top_p) {
    request.options = {.top_p = static_cast<float>(top_p)};
    const std::vector<uint32_t> tokens = sample(request);
    return std::count(tokens.begin(), tokens.end(), others / 2);
  };
  const double margin = 4e-6 + 0x1p-31 * request.columns;
  EXPECT_EQ(share_of_large(large - margin), rows) << large;
  EXPECT_LT(share_of_large(large + margin), rows) << large;
}

TEST(Sample, TopPCutsWhereTheMassSaysSo) {
  for (double large : {0.501, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9}) {
    expect_boundary(large, 1, 60);
  }
  for (double large : {0.1, 0.5, 0.8}) expect_boundary(large, 8000, 12);
}

// Neighbouring floats: the lowest digit of keys decides.
TEST(Sample, ComparesAllBitsOfLogits) {
  for (float first : {1.0f, -1.0f, 30.0f, 1e-20f}) {
    Request request{.columns = 5000, .logits = std::vector<float>(5000, first - 100)};
    float next = first;
    for (uint32_t i = 0; i < 8; ++i) {
      request.logits[4900 - 600 * i] = next;
      next = std::nextafter(next, 100.0f);
    }
    request.options = {.temperature = 0};
    EXPECT_EQ(sample(request), std::vector<uint32_t>{700}) << first;
    for (uint32_t k : {1u, 3u, 8u}) {
      for (uint64_t seed : {1, 2, 3, 4}) {
        request.options = {.top_k = k, .seed = seed};
        expect_reference(request, "neighbouring floats");
      }
    }
  }
}

TEST(Sample, GreedyHonoursPenaltyAndBias) {
  struct Example {
    const char* why;
    SampleOptions options;
    std::vector<TokenBias> biases;
    uint32_t expected;
  };
  // Tokens 0, 2 and 2 came before, 4 comes after the row.
  const std::vector<float> logits = {4, 3, 6, -1, 5};
  const Example examples[] = {
      {"the largest", {}, {}, 2},
      {"6 / 1.1 is still the largest", {.repetition_penalty = 1.1f}, {}, 2},
      {"6 / 1.5 is not, once for both times", {.repetition_penalty = 1.5f}, {}, 4},
      {"the window ends at the row's own token",
       {.repetition_penalty = 10, .penalty_window = 1},
       {{4, -3}},
       0},
      {"the bias comes after the penalty", {.repetition_penalty = 10}, {{2, 5}, {4, -0.5f}}, 2},
      {"ties go to the lowest", {}, {{0, 2}, {4, 1}}, 0},
      {"bans", {}, {{0, -1e9f}, {1, -1e9f}, {2, -1e9f}, {4, -1e9f}}, 3},
  };
  for (const Example& example : examples) {
    Request request{.columns = 5,
                    .logits = logits,
                    .options = example.options,
                    .biases = example.biases,
                    .timeline = {0, 2, 2, 4},
                    .position = 2};
    request.options.temperature = 0;
    EXPECT_EQ(sample(request), std::vector<uint32_t>{example.expected}) << example.why;
  }
  // A penalty makes negative logits more negative.
  Request negative{.columns = 3,
                   .logits = {-4, -2, -3},
                   .options = {.temperature = 0, .repetition_penalty = 2},
                   .timeline = {1}};
  EXPECT_EQ(sample(negative), std::vector<uint32_t>{2});
}

TEST(Sample, ARowIsTheSameAloneAndAmongOthers) {
  constexpr uint32_t columns = 5000;
  constexpr uint32_t rows = 5;
  Request together{.columns = columns,
                   .logits = test::random_floats(size_t{rows} * columns, 11, 6),
                   .options = {.temperature = 1.5f,
                               .top_k = 500,
                               .top_p = 0.97f,
                               .min_p = 0.001f,
                               .repetition_penalty = 1.5f,
                               .seed = 77},
                   .timeline = {8, 9, 10, 4999, 2048, 2047, 5, 6, 7},
                   .position = 3};
  const std::vector<uint32_t> expected = sample(together);
  for (uint32_t row = 0; row < rows; ++row) {
    Request alone = together;
    alone.logits.assign(together.logits.begin() + row * columns,
                        together.logits.begin() + (row + 1) * columns);
    alone.position += row;
    EXPECT_EQ(sample(alone), std::vector<uint32_t>{expected[row]}) << row;
  }
  EXPECT_EQ(sample(together), expected) << "again";
}

TEST(Sample, AStepOfNoRowsWritesNothing) {
  for (float temperature : {0.0f, 1.0f}) {
    Request request{.columns = 256,
                    .logits = std::vector<float>(512, 1.0f),
                    .options = {.temperature = temperature, .top_k = 4, .top_p = 0.5f},
                    .spare_rows = 2};
    const Bound bound = bind(request);
    gpu::CommandList commands(test::test_device());
    test::expect_success(record(commands, bound.op));
    test::run(commands, {.rows = 2});
    for (gpu::View view : {bound.op.keys, bound.op.state, bound.op.partials, bound.op.index}) {
      const auto words = test::download_as<uint32_t>(view);
      EXPECT_TRUE(test::untouched(std::span<const uint32_t>(words)));
    }
  }
}

// Probabilities of ten tokens in descending order, and where they lie.
constexpr double probabilities[] = {.30, .22, .16, .11, .08, .05, .04, .02, .01, .01};
constexpr uint32_t tokens_count = 10;
uint32_t column_of(uint32_t rank) { return (7 * rank + 3) % tokens_count; }

struct Distribution {
  const char* why;
  SampleOptions options;
  uint32_t kept;  // that many of the most likely
};

// How often each rank was drawn, over many seeds and positions.
std::vector<uint32_t> draw(SampleOptions options) {
  constexpr uint32_t rows = 64;
  Request request{.columns = tokens_count, .logits = {}};
  request.logits.resize(rows * tokens_count);
  for (uint32_t i = 0; i < rows * tokens_count; ++i) {
    const uint32_t rank = i % tokens_count;
    request.logits[i / tokens_count * tokens_count + column_of(rank)] =
        static_cast<float>(std::log(probabilities[rank]) + 5);
  }
  std::vector<uint32_t> counts(tokens_count);
  for (uint64_t seed = 0; seed < 16; ++seed) {
    request.options = options;
    request.options.seed = seed % 2 == 0 ? seed : seed << 32;
    for (uint32_t token : sample(request)) {
      for (uint32_t rank = 0; rank < tokens_count; ++rank) {
        if (column_of(rank) == token) ++counts[rank];
      }
    }
  }
  return counts;
}

// Pearson's statistic of the ranks that may be drawn; infinite if another one was.
double chi_square(std::span<const uint32_t> counts, double temperature, uint32_t kept) {
  double total = 0;
  double draws = 0;
  for (uint32_t rank = 0; rank < tokens_count; ++rank) {
    draws += counts[rank];
    if (rank < kept) total += std::pow(probabilities[rank], 1 / temperature);
    if (rank >= kept && counts[rank] > 0) return std::numeric_limits<double>::infinity();
  }
  double sum = 0;
  for (uint32_t rank = 0; rank < kept; ++rank) {
    const double expected = draws * std::pow(probabilities[rank], 1 / temperature) / total;
    sum += (counts[rank] - expected) * (counts[rank] - expected) / expected;
  }
  return sum;
}

TEST(Sample, FollowsTheExactDistribution) {
  const Distribution distributions[] = {
      {"plain", {}, 10},
      {"top-k", {.top_k = 4}, 4},
      {"0.68 lies above the fourth", {.top_p = 0.7f}, 4},
      {"0.68 lies above the fourth of 0.87 that top-k keeps", {.top_k = 5, .top_p = 0.77f}, 3},
      {"0.2 * 0.3 < 0.08", {.min_p = 0.2f}, 5},
      // Square roots: top-k keeps 2.60, of which 2.03 lie above the sixth, which is 0.41 of the
      // largest.
      {"all", {.temperature = 2, .top_k = 8, .top_p = 0.8f, .min_p = 0.45f}, 5},
  };
  for (const Distribution& d : distributions) {
    SCOPED_TRACE(d.why);
    const std::vector<uint32_t> counts = draw(d.options);
    const double freedom = d.kept - 1;
    const double bound = freedom + 4 * std::sqrt(2 * freedom);
    EXPECT_LT(chi_square(counts, d.options.temperature, d.kept), bound);
    // The test can tell distributions apart.
    EXPECT_GT(chi_square(counts, d.options.temperature * 2, d.kept), bound);
    EXPECT_GT(chi_square(counts, d.options.temperature, d.kept - 1), bound);
  }
}

// Known answers of the Random123 library.
TEST(SampleNoise, IsPhilox) {
  using Words = std::array<uint32_t, 4>;
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(SampleNoise, IsGumbel) {
  double largest = 0;
  uint32_t where = 0;
  const auto compare = [&](uint32_t random) {
    const double exact = -std::log2(-std::log1p(-(random + 0.5) * 0x1p-32));
    const double error = std::abs(gumbel(random) - exact);
    if (error > largest) largest = error, where = random;
  };
  for (uint32_t i = 0; i < 1u << 20; ++i) compare(i << 12 | (i * 2654435761u >> 20));
  for (int bit = 0; bit < 32; ++bit) {
    for (uint32_t offset : {-3u, -2u, -1u, 0u, 1u, 2u, 3u}) compare((1u << bit) + offset);
  }
  EXPECT_LT(largest, 0x1.4p-18) << where;
  EXPECT_EQ(gumbel(0), 33.0f);
}

// With one column the value is the noise; the last pass leaves it in `partials`.
TEST(Sample, NoiseHasTheReferencesBits) {
  constexpr uint32_t rows = 256;
  for (uint64_t seed : {3ull, 0x123456789abcdefull, 1ull << 63, ~0ull}) {
    const Bound bound = bind({.columns = 1,
                              .logits = std::vector<float>(rows, 1.0f),
                              .options = {.seed = seed},
                              .position = 1000});
    gpu::CommandList commands(test::test_device());
    test::expect_success(record(commands, bound.op));
    test::run(commands, {.rows = rows});
    const auto partials = test::download_as<uint32_t>(bound.op.partials);
    for (uint32_t row = 0; row < rows; ++row) {
      const uint32_t key = partials[2 * row];
      const uint32_t bits = key >= 0x80000000u ? key & 0x7fffffffu : ~key;
      ASSERT_EQ(std::bit_cast<float>(bits), sample_noise(seed, 1000 + row, 0)) << row;
    }
  }
}

// Words of one call of the generator, neighbouring tokens, positions and seeds do not repeat.
TEST(SampleNoise, DependsOnSeedPositionAndToken) {
  std::vector<float> values;
  for (uint64_t seed : {0ull, 1ull, 1ull << 32}) {
    for (uint32_t position : {0u, 1u, 131071u}) {
      for (uint32_t token = 0; token < 9; ++token) {
        values.push_back(sample_noise(seed, position, token));
      }
    }
  }
  std::sort(values.begin(), values.end());
  EXPECT_EQ(std::adjacent_find(values.begin(), values.end()), values.end());
}

TEST(SampleOptions, AreChecked) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  for (const Case& c : cases) EXPECT_TRUE(test::accepted(check_sampling(c.options))) << c.why;
  struct Refusal {
    const char* name;
    SampleOptions options;
  };
  const Refusal refusals[] = {
      {"temperature", {.temperature = -1}},
      {"temperature", {.temperature = nan}},
      {"temperature", {.temperature = infinity}},
      {"temperature", {.temperature = 1e-7f}},
      {"top_p", {.top_p = 0}},
      {"top_p", {.top_p = -0.1f}},
      {"top_p", {.top_p = 1.01f}},
      {"top_p", {.top_p = nan}},
      {"min_p", {.min_p = -0.1f}},
      {"min_p", {.min_p = 1.1f}},
      {"min_p", {.min_p = nan}},
      {"repetition_penalty", {.repetition_penalty = 0}},
      {"repetition_penalty", {.repetition_penalty = -2}},
      {"repetition_penalty", {.repetition_penalty = nan}},
      {"repetition_penalty", {.repetition_penalty = infinity}},
  };
  for (const Refusal& r : refusals) {
    EXPECT_TRUE(test::refused(check_sampling(r.options), ErrorCode::invalid_argument, {r.name}));
  }
}

TEST(SampleOptions, BiasesAreChecked) {
  const auto refused = [](std::vector<TokenBias> biases, std::string_view word) {
    return test::refused(check_biases(biases, 10), ErrorCode::invalid_argument, {word});
  };
  EXPECT_TRUE(test::accepted(check_biases({}, 10)));
  EXPECT_TRUE(
      test::accepted(check_biases(std::vector<TokenBias>{{9, -1e9f}, {0, 1e9f}, {5, 0}}, 10)));
  EXPECT_TRUE(refused({{10, 1}}, "token 10"));
  EXPECT_TRUE(refused({{3, 1}, {4, 1}, {3, 1}}, "token 3"));
  EXPECT_TRUE(refused({{3, -std::numeric_limits<float>::infinity()}}, "-1e9"));
  EXPECT_TRUE(refused({{3, std::numeric_limits<float>::quiet_NaN()}}, "token 3"));
  EXPECT_TRUE(refused(std::vector<TokenBias>(max_biases + 1), "1024"));
}

TEST(Sample, RefusesWhatItsKernelsCannotCompute) {
  const Request request{.columns = 2000, .logits = std::vector<float>(4000, 0.0f)};
  struct Refusal {
    const char* why;
    std::function<void(Sample&)> spoil;
  };
  const Refusal refusals[] = {
      {"no columns", [](Sample& op) { op.columns = 0; }},
      {"too many columns", [](Sample& op) { op.columns = (1 << 20) + 1; }},
      {"logits are too small", [](Sample& op) { op.logits.bytes -= 4; }},
      {"the timeline is too small", [](Sample& op) { op.timeline.bytes -= 4; }},
      {"settings are too small", [](Sample& op) { op.settings.bytes -= 4; }},
      {"biases are too small", [](Sample& op) { op.biases.bytes -= 4; }},
      {"keys are too small", [](Sample& op) { op.keys.bytes -= 4; }},
      {"state is too small", [](Sample& op) { op.state.bytes -= 4; }},
      {"partials are too small", [](Sample& op) { op.partials.bytes -= 4; }},
      {"index is too small", [](Sample& op) { op.index.bytes -= 4; }},
  };
  for (const Refusal& refusal : refusals) {
    Bound bound = bind(request);
    gpu::CommandList commands(test::test_device());
    EXPECT_TRUE(test::accepted(record(commands, bound.op))) << refusal.why;
    refusal.spoil(bound.op);
    EXPECT_FALSE(record(commands, bound.op)) << refusal.why;
  }
}

}  // namespace
}  // namespace tandem::ops
