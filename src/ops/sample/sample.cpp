// Checks, settings and recording of sampling.
#include "ops/sample/sample.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace tandem::ops {
namespace {

// As sample_pass.wgsl has them.
constexpr uint32_t columns_per_invocation = 16;
constexpr uint32_t passes = 7;
constexpr uint32_t state_words = 32 + 6 * 2 * 2048;

constexpr uint32_t max_columns = 1 << 20;
constexpr float largest_bias = 1e20f;

// Of a workgroup: no more than a small vocabulary needs.
uint32_t invocations(uint32_t columns) {
  uint32_t count = 4;
  while (count < 256 && count * columns_per_invocation < columns) count *= 2;
  return count;
}

uint32_t tile_columns(uint32_t columns) { return columns_per_invocation * invocations(columns); }

uint32_t tiles(uint32_t columns) {
  return (columns + tile_columns(columns) - 1) / tile_columns(columns);
}

bool within(float value, float low, float high) { return value >= low && value <= high; }

Result<void> check(const Sample& op) {
  if (op.columns == 0 || op.columns > max_columns) {
    return fail(ErrorCode::unsupported, "sample: the vocabulary must have 1 to {} tokens, not {}",
                max_columns, op.columns);
  }
  const uint64_t logits = uint64_t{op.max_rows} * op.columns;
  const uint64_t keys = sample_keys_bytes(op.columns, op.max_rows);
  TRY(gpu::check_indexable(keys / sizeof(uint32_t)));
  TRY(gpu::check_indexable(sample_state_bytes(op.max_rows) / sizeof(uint32_t)));
  TRY(check_size("sample", "logits", op.logits, logits * sizeof(float)));
  TRY(check_size("sample", "timeline", op.timeline, uint64_t{op.context} * sizeof(uint32_t)));
  TRY(check_size("sample", "settings", op.settings, sizeof(SampleSettings)));
  TRY(check_size("sample", "biases", op.biases, max_biases * sizeof(TokenBias)));
  TRY(check_size("sample", "keys", op.keys, keys));
  TRY(check_size("sample", "state", op.state, sample_state_bytes(op.max_rows)));
  TRY(check_size("sample", "partials", op.partials,
                 sample_partials_bytes(op.columns, op.max_rows)));
  return check_size("sample", "index", op.index, uint64_t{op.max_rows} * sizeof(uint32_t));
}

}  // namespace

Result<void> check_biases(std::span<const TokenBias> biases, uint32_t columns) {
  if (biases.size() > max_biases) {
    return fail(ErrorCode::invalid_argument, "at most {} tokens can have a bias, not {}",
                max_biases, biases.size());
  }
  std::vector<uint32_t> tokens;
  for (const TokenBias& bias : biases) {
    if (bias.token >= columns) {
      return fail(ErrorCode::invalid_argument, "bias of token {}: the vocabulary has {} tokens",
                  bias.token, columns);
    }
    if (!within(bias.bias, -largest_bias, largest_bias)) {
      return fail(ErrorCode::invalid_argument,
                  "bias of token {} must be within +-{:g}, not {}; -1e9 bans a token", bias.token,
                  largest_bias, bias.bias);
    }
    tokens.push_back(bias.token);
  }
  std::sort(tokens.begin(), tokens.end());
  const auto repeated = std::adjacent_find(tokens.begin(), tokens.end());
  if (repeated == tokens.end()) return {};
  return fail(ErrorCode::invalid_argument, "token {} has more than one bias; give their sum",
              *repeated);
}

bool is_argmax(const SampleOptions& options, std::span<const TokenBias> biases) {
  return options.temperature == 0 && options.repetition_penalty == 1 && biases.empty();
}

SampleSettings sample_settings(const SampleOptions& options, size_t bias_count) {
  constexpr double log2_e = 1.4426950408889634;
  const bool greedy = options.temperature == 0;
  return {
      .greedy = greedy,
      .scale = greedy ? 1 : static_cast<float>(log2_e / double{options.temperature}),
      .top_k = options.top_k,
      .top_p = options.top_p < 1
                   ? static_cast<uint32_t>(std::max(1.0, double{options.top_p} * 0x1p32))
                   : 0,
      .min_p = options.min_p > 0 ? static_cast<float>(std::log2(double{options.min_p})) : -3e38f,
      .penalty = options.repetition_penalty,
      .inverse_penalty = 1 / options.repetition_penalty,
      .penalty_window = options.penalty_window,
      .seed = {static_cast<uint32_t>(options.seed), static_cast<uint32_t>(options.seed >> 32)},
      .bias_count = static_cast<uint32_t>(bias_count)};
}

uint64_t sample_keys_bytes(uint32_t columns, uint32_t max_rows) {
  return uint64_t{max_rows} * tiles(columns) * tile_columns(columns) * sizeof(uint32_t);
}

uint64_t sample_state_bytes(uint32_t max_rows) {
  return uint64_t{max_rows} * state_words * sizeof(uint32_t);
}

uint64_t sample_partials_bytes(uint32_t columns, uint32_t max_rows) {
  return uint64_t{max_rows} * tiles(columns) * 2 * sizeof(uint32_t);
}

std::vector<Route> sample_routes(const Sample& op) {
  const uint32_t count = tiles(op.columns);
  const gpu::Constant per_row = {"TILES", double(count)};
  const gpu::Constant size = {"INVOCATIONS", double(invocations(op.columns))};
  std::vector<Route> routes = {{"sample_adjust",
                                {{"COLUMNS", double(op.columns)},
                                 size,
                                 {"CONTEXT", double(op.context)},
                                 {"MAX_BIASES", double(max_biases)},
                                 {"STATE_WORDS", double(state_words)}},
                                {.groups = 2 * count, .rows_per_group = 1}}};
  for (uint32_t pass = 0; pass < passes; ++pass) {
    routes.push_back({"sample_pass",
                      {per_row, size, {"PASS", double(pass)}},
                      {.groups = count, .rows_per_group = 1}});
  }
  routes.push_back({"argmax_combine", {per_row}, {.groups = 1, .rows_per_group = 1}});
  return routes;
}

Result<void> record(gpu::CommandList& commands, const Sample& op) {
  TRY(check(op));
  const std::vector<Route> routes = sample_routes(op);
  TRY(dispatch(commands, routes.front(),
               {gpu::uniform(op.step), gpu::uniform(op.settings), gpu::read(op.logits),
                gpu::read(op.timeline), gpu::read(op.biases), gpu::read_write(op.keys),
                gpu::read_write(op.state)}));
  for (uint32_t pass = 0; pass < passes; ++pass) {
    TRY(dispatch(commands, routes[1 + pass],
                 {gpu::uniform(op.step), gpu::uniform(op.settings), gpu::read(op.keys),
                  gpu::read_write(op.state), gpu::read_write(op.partials)}));
  }
  return dispatch(commands, routes.back(),
                  {gpu::uniform(op.step), gpu::read(op.partials), gpu::read_write(op.index)});
}

}  // namespace tandem::ops
