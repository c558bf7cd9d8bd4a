// Tandem's C++ API: open an artifact as an Engine, make Sessions of it, generate. Nothing here
// throws, prints or exits.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/error.h"
#include "tandem/message.h"
#include "tandem/sampling.h"

// Not part of the API: outside of what is visible.
namespace tandem::engine {
class Opening;
struct SessionSequence;
}  // namespace tandem::engine

#pragma GCC visibility push(default)
namespace tandem {

enum class Place {
  gpu,  // WebGPU
  cpu,  // the plain C++ reference, slow
};

enum class KvPrecision { f16, f32 };

// What matrix products read of the rows between them: f32, or int8 with a scale for each 32
// columns, which is faster and rounds (docs/operators.md, quantize). Either way MTP gives the
// tokens of plain decoding.
enum class Activations { f32, int8 };

struct EngineOptions {
  Place place = Place::gpu;
  // A part of a GPU adapter's name in any case, or "software"; empty takes the fastest. A software
  // adapter is taken only when it is asked for or is the only one.
  std::string adapter;
  // Faster routes to keep off: "subgroups", "dp4a", "f16".
  std::vector<std::string> disabled_tiers;
  // Positions of a session's KV cache; by default the artifact's bound, at most 8960.
  std::optional<uint32_t> context;
  // Rows of one prefill chunk; by default the artifact's bound, 512.
  std::optional<uint32_t> input_bound;
  KvPrecision kv = KvPrecision::f16;
  Activations activations = Activations::f32;
  // The folder of an assistant that was attached to the artifact after its export; empty: none.
  std::string assistant;
  // Refuses (unverified) an artifact whose sources do not match pins: the built-in ones, and those
  // of the file `sources`, if it is not empty. docs/artifact.md says what a pin is.
  bool require_verified = false;
  std::string sources;
  // Tokens that the assistant drafts in a round, 0 to 2; by default 2 where the artifact has an
  // assistant. With 0 it is not loaded.
  std::optional<uint32_t> drafts;
  // Decode rounds submitted ahead of their readback, at least 1.
  uint32_t rounds_in_flight = 4;
  // One compute pass for each dispatch instead of one for each submission. Same results, slower.
  bool pass_per_dispatch = false;
  // Where measurements of this machine's GPU adapters are kept, in a file for each: how the matrix
  // products of decoding run fastest. What it has is used; what it does not have is measured when
  // an engine opens, once, which takes some seconds. It is made where there is none. Empty: nothing
  // is measured, read or written, and products run by rules for their shapes. Another measurement
  // may add in another order, so that logits differ in their last bits. Software adapters,
  // and those without timestamps, always run by the rules.
  std::string tuning_folder;
  // Takes lines for people about the tuning, on the calling thread: what was measured and where it
  // is kept, a file that was not usable.
  std::function<void(std::string_view line)> on_note;
  // Called while the weights load, on the calling thread.
  std::function<void(uint64_t done_bytes, uint64_t total_bytes)> on_load;
};

struct EngineInfo {
  // The sha256 of its manifest, in hex; with an attached assistant, of that one's.
  std::string artifact;
  // "verified", "pending" or "synthetic", by the pins of the options; empty in the browser, which
  // reads no receipt.
  std::string provenance;
  std::string adapter;  // its name; "cpu" for Place::cpu
  std::string driver;
  std::string library;    // the WebGPU library
  bool software = false;  // the adapter is a software one
  std::vector<std::string> tiers;
  std::string kernel_closure;  // the sha256 over all kernels, in hex; empty on the CPU
  KvPrecision kv = KvPrecision::f16;
  Activations activations = Activations::f32;  // also f32 where no product can read int8
  SampleOptions sampling;                      // the artifact's defaults
  uint32_t vocabulary = 0;
  uint32_t context = 0;
  uint32_t input_bound = 0;
  uint32_t drafts = 0;  // that the assistant can make in a round; 0: there is none
  uint64_t weight_bytes = 0;
  uint64_t gpu_bytes = 0;      // weights, scratch and one session
  uint64_t session_bytes = 0;  // of them a session's: KV, timeline and the like; 0 on the CPU
  uint64_t kernels = 0;
  // How many shapes of matrix products were tried at open for rows of equal bits, and how many of
  // them failed and take the multi-row kernels for single rows.
  uint32_t row_shapes = 0;
  uint32_t row_shapes_different = 0;
  uint32_t tuned_shapes = 0;  // of products that run as was measured, not by the rules
  double load_ms = 0;         // reading, verifying and writing the weights
  double compile_ms = 0;      // kernels and recording
};

// Whether rounds draft tokens with the assistant. The tokens generated are the same.
enum class Mtp {
  automatic,  // as long as that is measured to be faster; never without an assistant
  on,
  off,
};

// What a round did.
struct RoundInfo {
  uint32_t position = 0;          // of its first row
  std::vector<uint32_t> drafts;   // verified
  std::vector<uint32_t> targets;  // what the model puts after each row
  uint32_t accepted = 0;          // so many of the drafts are the targets
};
using RoundSink = std::function<void(const RoundInfo& round)>;

struct GenerateOptions {
  uint32_t max_tokens = 256;
  bool ignore_eos = false;                // goes on past the artifact's stop ids
  std::optional<SampleOptions> sampling;  // by default EngineInfo::sampling
  std::vector<TokenBias> biases;          // of different tokens, at most max_biases
  // The text ends in front of the first of them that is generated, whatever the tokens' borders.
  std::vector<std::string> stop_strings;
  Mtp mtp = Mtp::automatic;
  RoundSink on_round;  // called for each round, prefill's included
};

enum class StopReason {
  stop_id,      // one of the artifact's stop ids was generated
  stop_string,  // one of the stop strings was generated
  length,       // max_tokens
  context,      // the session's positions are used up
  aborted,      // by Session::abort, or by the caller's callback
};
std::string_view name(StopReason reason);

struct GenerateStats {
  uint32_t prompt_tokens = 0;
  uint32_t reused_tokens = 0;  // of the prompt, whose KV was there already
  uint32_t generated_tokens = 0;
  uint32_t rounds = 0;  // whose result was used, prefill's included
  // Drafts verified and accepted, by their place in the round. generated_tokens = rounds +
  // accepted - discarded.
  std::array<uint32_t, 2> drafted = {};
  std::array<uint32_t, 2> accepted = {};
  uint32_t discarded = 0;     // tokens of a round behind its end: a stop id or a stop string
  double first_token_ms = 0;  // from the call to the first token
  double decode_ms = 0;       // from the first token to the last
  double prefill_tokens_per_second() const;
  double decode_tokens_per_second() const;  // 0 with fewer than two tokens
  // The part of the drafts verified that was accepted: of all, of those at a place; 0 without any.
  double acceptance() const;
  double acceptance(size_t place) const;
  double tokens_per_round() const;  // of the rounds after prefill's; 0 without any
};

struct Generation {
  // Every generated token, the stop id or the one that completed a stop string included.
  std::vector<uint32_t> ids;
  std::string text;  // of the ids, without a stop id, a stop string and what follows it
  StopReason stop = StopReason::length;
  GenerateStats stats;
};

// Takes the next piece of text, whole UTF-8 characters; false aborts.
using TextSink = std::function<bool(std::string_view piece)>;

// Takes logits rows in order: [rows][vocabulary], the first of them being row `first_row`.
using LogitsSink = std::function<Result<void>(uint32_t first_row, std::span<const float> logits)>;

// One timeline. Sessions of one engine are independent of each other and may take turns, step by
// step. An engine and its sessions belong to one thread at a time; the engine must outlive them,
// but may be moved.
//
// A session keeps the KV of its timeline: a prompt that begins as the timeline does runs only what
// differs. Refused arguments leave everything as it was; after any other error the timeline is
// empty.
class Session {
 public:
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  ~Session();

  // Runs a prompt, from position 0 on, and generates what follows. Errors: context_exceeded for a
  // prompt longer than the context, malformed_text for ids outside the vocabulary,
  // invalid_argument for no ids and for options out of their range, device_lost.
  Result<Generation> generate(std::span<const uint32_t> prompt, const GenerateOptions& options,
                              const TextSink& sink = {});

  // Goes on with making a session of Engine::begin_session; true once it can start.
  Result<bool> prepare();

  // The same in steps. `start` ends a generation that is still running.
  Result<void> start(std::span<const uint32_t> prompt, const GenerateOptions& options);
  bool running() const;
  // Waits for the next token and gives the text that it completes, which may be none.
  Result<std::string> step();
  // The same without waiting: nothing while the token is not there.
  Result<std::optional<std::string>> poll();
  // Ends the generation with what was generated so far, and gives the text that was held back.
  std::string abort();
  // The one that is running, or the last one.
  const Generation& generation() const;

  // The timeline: the last prompt and the tokens generated after it.
  const std::vector<uint32_t>& ids() const;
  // The timeline with `messages` after it, up to the beginning of the model's next answer: the
  // prompt of a conversation's next turn. On an empty timeline, as Engine::encode_chat.
  Result<std::vector<uint32_t>> next_prompt(std::span<const Message> messages) const;
  // Empties the timeline, at once; a new generation is as in a new session.
  void reset();

  // The logits after the last of `ids`, one for each id of the vocabulary. Empties the timeline.
  // Errors of ids and device as for generate.
  Result<std::vector<float>> logits(std::span<const uint32_t> ids);
  // The logits after each of `ids`, in bands of rows. Empties the timeline. The sink's error ends
  // it.
  Result<void> all_logits(std::span<const uint32_t> ids, const LogitsSink& sink);

 private:
  friend class Engine;
  friend struct engine::SessionSequence;
  struct State;
  explicit Session(std::unique_ptr<State> state);
  Result<std::optional<std::string>> advance(bool wait);
  std::unique_ptr<State> state_;
};

// An opened artifact: its weights, verified and immutable, ready to run.
class Engine {
 public:
  // All or nothing: the engine exists only after the last byte was verified. Errors: not_found, io,
  // malformed_artifact, hash_mismatch, ... for the folder, unverified for its sources,
  // invalid_argument for an option,
  // limit_exceeded for a plan that the adapter does not allow, no_adapter, out_of_memory,
  // device_lost.
  static Result<Engine> open(const std::string& artifact, const EngineOptions& options);
  Engine(Engine&&) noexcept;
  Engine& operator=(Engine&&) noexcept;
  ~Engine();

  const EngineInfo& info() const;
  // An empty timeline with a KV cache of its own. Errors: out_of_memory, device_lost.
  Result<Session> session();
  // The same without waiting: Session::prepare must say true before anything else is asked of it.
  Result<Session> begin_session();
  // Whether a generation would take these options: what Session::start says of them.
  Result<void> check(const GenerateOptions& options) const;

  // A raw prompt: control tokens in it are parsed; exactly one BOS is in front. Errors:
  // malformed_text for what is not UTF-8.
  Result<std::vector<uint32_t>> encode(std::string_view text) const;
  // A conversation up to the beginning of the model's answer. Errors: unsupported for a chat
  // template that Tandem does not know.
  Result<std::vector<uint32_t>> encode_chat(std::span<const Message> messages) const;

  struct State;  // the engine's own

 private:
  friend class engine::Opening;
  explicit Engine(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace tandem
#pragma GCC visibility pop
