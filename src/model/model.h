// What the engine drives: a model that takes its weights and then makes sequences. Implemented on
// the GPU by target.h and on the CPU by reference.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/sampling.h"
#include "ops/accept/accept.h"
#include "ops/op.h"
#include "spec/config.h"
#include "spec/layout.h"
#include "tandem/error.h"
#include "tandem/sampling.h"

namespace tandem::model {

// The type that the artifact's recipe gave to each tensor of the registry, by name.
using TensorTypes = std::map<std::string, spec::WeightType, std::less<>>;

// What a model is opened for. The two bounds are independent of each other.
struct Capacity {
  uint32_t context = 0;        // positions of one sequence
  uint32_t input_bound = 512;  // rows of one prefill chunk
  ops::KvType kv = ops::KvType::f16;
  ops::Activations activations = ops::Activations::f32;
  uint32_t rounds_in_flight = 4;  // rounds submitted ahead of their readback
  uint32_t drafts = 0;            // K: what the assistant drafts in a round; 0: there is none
  bool scripted = false;          // drafts can be replaced (tests and benchmarks)
};
inline constexpr uint32_t most_drafts = 2;

// What a generation asks for: how its tokens are chosen, and how far it may go.
struct Request {
  uint32_t max_tokens = 1;         // at least 1
  std::vector<uint32_t> stop_ids;  // at most max_stop_ids
  SampleOptions sampling{.temperature = 0};
  std::vector<TokenBias> biases;
};

// What a round ran and emitted, and why the sequence stopped, if it did.
using Round = ops::RoundRecord;

// Receives rows of an intermediate result during `score`: "embed", "per_layer_inputs"
// [layer][row][width], "layer0", ..., "final". `first_row` counts from the start of the scored ids.
using Trace =
    std::function<void(std::string_view name, uint32_t first_row, std::span<const float> values)>;

// Receives logits rows [row][vocabulary] of `score` in order.
using LogitsSink = std::function<Result<void>(uint32_t first_row, std::span<const float> logits)>;

// Keys and values of one layer, [position][kv_head][head_dim].
struct KvRows {
  std::vector<float> keys;
  std::vector<float> values;
};

// The checks that all implementations share; their errors name what was asked for and what is
// allowed.
Result<void> check_capacity(const spec::Config& config, const Capacity& capacity);
Result<void> check_ids_fit(const spec::Config& config, const Capacity& capacity, uint32_t position,
                           std::span<const uint32_t> ids);
Result<void> check_request(const spec::Config& config, const Request& request);
Result<void> check_drafting(const Capacity& capacity);
Result<void> check_script(const Capacity& capacity, std::span<const uint32_t> drafts);
// What the GPU says of a round, recounted: an error is a defect, of Tandem or of the driver.
Result<void> check_round(const spec::Config& config, const Round& round);
// Of rows of logits: that all are numbers.
Result<void> check_finite(std::span<const float> logits, uint32_t first_row, uint32_t vocabulary);
// A prefill may start at 0, and where `kept` says so.
Result<void> check_start(const spec::Config& config, const Capacity& capacity, uint32_t position,
                         uint32_t written);
Result<void> check_kv_range(const spec::Config& config, const Capacity& capacity, uint32_t layer,
                            uint32_t begin, uint32_t end);
// Whether the rings still hold what the windows of rows from `position` on read, when positions
// below `written` have been written.
bool kept(const spec::Config& config, const Capacity& capacity, uint32_t position,
          uint32_t written);
// Positions [begin, end) out of a ring of `slots` rows of `width` floats.
KvRows unroll_kv(std::span<const float> keys, std::span<const float> values, uint32_t slots,
                 size_t width, uint32_t begin, uint32_t end);

// One timeline: ids by position, their KV, and the rounds on their way. Calls submit work and do
// not wait for it, but for `harvest` with wait, `logits`, `score` and `kv`.
class Sequence {
 public:
  virtual ~Sequence() = default;

  // Goes on with what a new sequence needs before its first prefill: kernels are compiled and
  // tried. True once that is done; with `wait` it is done.
  virtual Result<bool> prepare(bool /*wait*/) { return true; }

  // Runs `ids` (at least one) at positions position, position + 1, ... whose earlier positions have
  // KV already, picks the token that follows the last of them, and so submits the first round.
  // Rounds in flight are dropped.
  virtual Result<void> prefill(uint32_t position, std::span<const uint32_t> ids,
                               const Request& request) = 0;

  // Whether a prefill may start at `position`: rounds and chunks beyond it may have overwritten
  // what its window reads.
  virtual bool keeps(uint32_t position) const = 0;

  // Submits one more round after the last one submitted: one row, or with drafts one row and one
  // for each draft. The tokens are the same. Rounds past a stop emit nothing.
  virtual Result<void> decode(bool with_drafts) = 0;
  Result<void> decode() { return decode(false); }

  // What the drafts of rounds submitted from now on are replaced with, by position up to the
  // context; ops::unscripted leaves one as it is. Needs Capacity::scripted.
  virtual Result<void> script(std::span<const uint32_t> drafts) = 0;

  // How many submitted rounds are not harvested yet.
  virtual uint32_t in_flight() const = 0;

  // The oldest round not harvested yet; nothing if it is not ready (only without `wait`), or if it
  // was submitted past a stop.
  virtual Result<std::optional<Round>> harvest(bool wait) = 0;

  // The logits rows [row][vocabulary] that the last round harvested chose its tokens from.
  virtual Result<std::vector<float>> logits() = 0;

  // Runs all layers on all `ids` from position 0. Rounds in flight are dropped.
  virtual Result<void> score(std::span<const uint32_t> ids, const LogitsSink& sink,
                             const Trace& trace) = 0;

  // The times of each submission since the last call, where submissions are timed.
  virtual std::vector<std::vector<gpu::DispatchTime>> take_times() { return {}; }

  // The KV that `layer` reads at positions [begin, end), which must lie within its ring.
  virtual Result<KvRows> kv(uint32_t layer, uint32_t begin, uint32_t end) = 0;
};

class Model {
 public:
  virtual ~Model() = default;

  virtual const spec::Config& config() const = 0;
  virtual const Capacity& capacity() const = 0;

  // Fills a part of a weight plane ("layers.0.qkv.quants"). All planes must be filled before the
  // first sequence.
  virtual Result<void> write(std::string_view plane, uint64_t offset,
                             std::span<const std::byte> bytes) = 0;

  // One that is still to be prepared. The model must outlive its sequences.
  virtual Result<std::unique_ptr<Sequence>> new_sequence() = 0;
  // The same, prepared.
  Result<std::unique_ptr<Sequence>> sequence();
};

}  // namespace tandem::model
