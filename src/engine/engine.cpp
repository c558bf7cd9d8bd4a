// Opening an artifact and generating from it: the public API over model, text and artifact.
#include "tandem/engine.h"

#include <chrono>

#include "artifact/artifact.h"
#include "base/error.h"
#include "engine/loop.h"
#include "engine/open_model.h"
#include "engine/prompts.h"

namespace tandem {
namespace {

double milliseconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

class ModelSink : public artifact::WeightSink {
 public:
  explicit ModelSink(model::Model& model) : model_(model) {}
  Result<void> write(std::string_view plane, uint64_t offset,
                     std::span<const std::byte> bytes) override {
    return model_.write(plane, offset, bytes);
  }

 private:
  model::Model& model_;
};

}  // namespace

struct Engine::State {
  engine::OpenedModel opened;
  engine::Prompts prompts;
  std::vector<uint32_t> stop_ids;
  EngineInfo info;
  // Made at open, which compiles every kernel; the first session takes it.
  std::unique_ptr<model::Sequence> first;
};

struct Session::State {
  const Engine::State& engine;
  std::unique_ptr<model::Sequence> sequence;
};

Result<Engine> Engine::open(const std::string& folder, const EngineOptions& options) {
  using Clock = std::chrono::steady_clock;
  TRY_ASSIGN(const artifact::Artifact artifact, artifact::Artifact::open(folder));
  TRY_ASSIGN(engine::Prompts prompts, engine::Prompts::open(artifact));
  TRY_ASSIGN(std::vector<uint32_t> stop_ids, engine::stop_ids(artifact));
  TRY_ASSIGN(engine::OpenedModel opened, engine::open_model(artifact, options));

  const Clock::time_point load_start = Clock::now();
  ModelSink sink(*opened.model);
  TRY(artifact::load(artifact, sink, options.on_load));
  const double load_ms = milliseconds_since(load_start);

  const Clock::time_point compile_start = Clock::now();
  TRY_ASSIGN(std::unique_ptr<model::Sequence> first, opened.model->sequence());
  EngineInfo info = engine::describe(artifact, opened);
  info.load_ms = load_ms;
  info.compile_ms = milliseconds_since(compile_start);
  return Engine(
      std::unique_ptr<State>(new State{std::move(opened), std::move(prompts), std::move(stop_ids),
                                       std::move(info), std::move(first)}));
}

Engine::Engine(std::unique_ptr<State> state) : state_(std::move(state)) {}
Engine::Engine(Engine&&) noexcept = default;
Engine& Engine::operator=(Engine&&) noexcept = default;
Engine::~Engine() = default;

const EngineInfo& Engine::info() const { return state_->info; }

Result<Session> Engine::session() {
  std::unique_ptr<model::Sequence> sequence = std::move(state_->first);
  if (!sequence) {
    TRY_ASSIGN(sequence, state_->opened.model->sequence());
  }
  return Session(std::unique_ptr<Session::State>(new Session::State{*state_, std::move(sequence)}));
}

Result<std::vector<uint32_t>> Engine::encode(std::string_view text) const {
  return state_->prompts.encode(text);
}

Result<std::vector<uint32_t>> Engine::encode_chat(std::span<const Message> messages) const {
  return state_->prompts.encode_chat(messages);
}

Session::Session(std::unique_ptr<State> state) : state_(std::move(state)) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

Result<Generation> Session::generate(std::span<const uint32_t> prompt,
                                     const GenerateOptions& options, const TextSink& sink) {
  const Engine::State& engine = state_->engine;
  engine::Loop loop(*state_->sequence, engine.prompts.tokenizer());
  TRY(loop.start(prompt,
                 {.max_tokens = options.max_tokens,
                  .stop_ids = options.ignore_eos ? std::vector<uint32_t>{} : engine.stop_ids}));
  const uint32_t rounds_in_flight = engine.opened.model->capacity().rounds_in_flight;
  while (!loop.finished()) {
    TRY_ASSIGN(const std::string piece, loop.step(rounds_in_flight));
    if (!piece.empty() && sink && !sink(piece)) loop.abort();
  }
  return loop.generation();
}

Result<std::vector<float>> Session::logits(std::span<const uint32_t> ids) {
  TRY(state_->sequence->prefill(0, ids, {.max_tokens = 1}));
  TRY(state_->sequence->harvest(true));
  return state_->sequence->logits();
}

Result<void> Session::all_logits(std::span<const uint32_t> ids, const LogitsSink& sink) {
  return state_->sequence->score(ids, sink, {});
}

std::string_view name(StopReason reason) {
  switch (reason) {
    case StopReason::stop_id:
      return "stop_id";
    case StopReason::length:
      return "length";
    case StopReason::context:
      return "context";
    case StopReason::aborted:
      return "aborted";
  }
  return "";
}

double GenerateStats::prefill_tokens_per_second() const {
  return first_token_ms > 0 ? prompt_tokens * 1e3 / first_token_ms : 0;
}

double GenerateStats::decode_tokens_per_second() const {
  return generated_tokens > 1 && decode_ms > 0 ? (generated_tokens - 1) * 1e3 / decode_ms : 0;
}

}  // namespace tandem
