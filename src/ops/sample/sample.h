// Chooses the token that follows each row of logits. In this order, as transformers does:
//   penalty      logit < 0 ? logit * p : logit * (1 / p), once for each distinct token among the
//   last
//                `penalty_window` tokens of the timeline up to the row's own position
//   bias         + bias
//   temperature  * 1 / temperature
//   top-k        keeps the values >= the k-th largest
//   top-p        of these, the values with less than top_p of their probability above them
//   min-p        of these, the values with at least min_p times the largest probability
// and then takes the largest of value + Gumbel noise among the kept; of equals, the lowest id.
// Temperature 0 is greedy: the largest value after penalty and bias; of equals, the lowest id.
//
// Equal values are kept or dropped together. The noise is a function of (seed, position, token) and
// the token one of (logits, tokens before it, options, biases, seed, position): nothing depends on
// the rows beside. Penalty, bias and temperature are one f32 operation each, and all that follows
// is integer arithmetic but for one f32 addition of the noise, so that GPUs agree with each other.
//
// Probabilities are multiples of 2^-31 of the largest one, rounded down, with a relative error
// below 2^-18: top-p's boundary is exact but for a share of the mass below columns * 2^-31 + 2^-18.
#pragma once

#include <array>

#include "ops/op.h"
#include "tandem/sampling.h"

namespace tandem::ops {

// Refuses tokens that are no columns or come twice. A bias of -1e9 bans a token.
Result<void> check_biases(std::span<const TokenBias> biases, uint32_t columns);
// Whether these choose what `argmax` does.
bool is_argmax(const SampleOptions& options, std::span<const TokenBias> biases);

// The options as kernels read them. Values are scaled to powers of 2: probability ~ 2^value.
struct SampleSettings {
  uint32_t greedy = 0;
  float scale = 1;     // log2(e) / temperature; greedy: 1
  uint32_t top_k = 0;  // 0: off
  uint32_t top_p = 0;  // in units of 2^-32; 0: off
  float min_p = 0;     // log2(min_p), the least difference from the largest value
  float penalty = 1;
  float inverse_penalty = 1;
  uint32_t penalty_window = 0;
  std::array<uint32_t, 2> seed = {};  // low, high
  uint32_t bias_count = 0;
  uint32_t reserved = 0;
};
static_assert(sizeof(SampleSettings) == 48);
// Of options that check_sampling accepts.
SampleSettings sample_settings(const SampleOptions& options, size_t bias_count);

// Options and biases are data: one recorded list serves all of them.
struct Sample {
  uint32_t columns = 0;  // the vocabulary, at most 2^20
  uint32_t context = 0;  // no row's position reaches it
  gpu::View step;
  gpu::View logits;    // [max_rows][columns], finite; those beyond +-1e20 count as +-1e20
  gpu::View timeline;  // u32 [context], by position
  gpu::View settings;  // a SampleSettings
  gpu::View biases;    // TokenBias [max_biases], of which settings.bias_count count
  gpu::View keys;      // scratch of sample_keys_bytes
  gpu::View state;     // scratch of sample_state_bytes
  gpu::View partials;  // scratch of sample_partials_bytes
  gpu::View index;     // u32 [max_rows]
  uint32_t max_rows = 0;
};

uint64_t sample_keys_bytes(uint32_t columns, uint32_t max_rows);
uint64_t sample_state_bytes(uint32_t max_rows);
uint64_t sample_partials_bytes(uint32_t columns, uint32_t max_rows);
std::vector<Route> sample_routes(const Sample& op);
Result<void> record(gpu::CommandList& commands, const Sample& op);

// The token that follows `tokens` (the timeline up to the row's own position).
uint32_t sample_reference(const SampleOptions& options, std::span<const TokenBias> biases,
                          std::span<const uint32_t> tokens, std::span<const float> logits);

}  // namespace tandem::ops
