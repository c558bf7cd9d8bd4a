// Sessions: generations on one timeline, which keeps its KV from one to the next.
#include <optional>

#include "base/error.h"
#include "engine/history.h"
#include "engine/loop.h"
#include "engine/session_sequence.h"
#include "engine/state.h"

namespace tandem {

struct Session::State {
  const Engine::State& engine;
  std::unique_ptr<model::Sequence> sequence;
  engine::History history;
  engine::MtpPolicy policy;
  std::optional<engine::Loop> loop;

  // After an error nothing is known of the KV.
  tl::unexpected<Error> lost(Error error) {
    history.clear();
    loop.reset();
    return tl::unexpected<Error>(std::move(error));
  }
};

namespace {

// What a generation runs with.
struct Prepared {
  model::Request request;
  text::StopStrings stops;
};

Result<Prepared> request_of(const Engine::State& engine, const GenerateOptions& options) {
  const model::Model& model = *engine.opened.model;
  Prepared prepared;
  prepared.request = {
      .max_tokens = options.max_tokens,
      .stop_ids = options.ignore_eos ? std::vector<uint32_t>{} : engine.defaults.stop_ids,
      .sampling = options.sampling.value_or(engine.defaults.sampling),
      .biases = options.biases};
  TRY(model::check_request(model.config(), prepared.request));
  TRY_ASSIGN(prepared.stops, text::StopStrings::make(options.stop_strings));
  if (options.mtp == Mtp::on) TRY(model::check_drafting(model.capacity()));
  return prepared;
}

}  // namespace

Result<void> Engine::check(const GenerateOptions& options) const {
  TRY(request_of(*state_, options));
  return {};
}

Result<Session> Engine::session() {
  TRY_ASSIGN(Session session, begin_session());
  TRY(session.state_->sequence->prepare(true));
  return session;
}

Result<Session> Engine::begin_session() {
  std::unique_ptr<model::Sequence> sequence = std::move(state_->first);
  if (!sequence) {
    TRY_ASSIGN(sequence, state_->opened.model->new_sequence());
  }
  return Session(std::unique_ptr<Session::State>(
      new Session::State{*state_, std::move(sequence), {}, {}, {}}));
}

Session::Session(std::unique_ptr<State> state) : state_(std::move(state)) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

Result<void> Session::start(std::span<const uint32_t> prompt, const GenerateOptions& options) {
  const Engine::State& engine = state_->engine;
  const model::Model& model = *engine.opened.model;
  TRY(model::check_ids_fit(model.config(), model.capacity(), 0, prompt));
  TRY_ASSIGN(Prepared prepared, request_of(engine, options));

  uint32_t reused = state_->history.shared(prompt);
  if (!state_->sequence->keeps(reused)) reused = 0;
  state_->policy.set_mode(model.capacity().drafts > 0 ? options.mtp : Mtp::off);
  state_->loop.emplace(*state_->sequence, engine.prompts.tokenizer(), state_->policy,
                       std::move(prepared.stops), options.on_round);
  if (Result<void> started = state_->loop->start(prompt, reused, prepared.request); !started) {
    return state_->lost(std::move(started).error());
  }
  state_->history.begin(prompt);
  return {};
}

bool Session::running() const { return state_->loop && !state_->loop->finished(); }

Result<bool> Session::prepare() { return state_->sequence->prepare(false); }

Result<std::string> Session::step() {
  TRY_ASSIGN(const std::optional<std::string> piece, advance(true));
  return piece.value_or(std::string());
}

Result<std::optional<std::string>> Session::poll() { return advance(false); }

Result<std::optional<std::string>> Session::advance(bool wait) {
  if (!running()) {
    return fail(ErrorCode::invalid_argument, "no generation is running; start one first");
  }
  engine::Loop& loop = *state_->loop;
  const size_t before = loop.generation().ids.size();
  Result<std::optional<std::string>> piece =
      loop.step(state_->engine.opened.model->capacity().rounds_in_flight, wait);
  if (!piece) return state_->lost(std::move(piece).error());
  const std::vector<uint32_t>& ids = loop.generation().ids;
  for (size_t i = before; i < ids.size(); ++i) state_->history.append(ids[i]);
  return piece;
}

std::string Session::abort() { return running() ? state_->loop->abort() : std::string(); }

const Generation& Session::generation() const {
  static const Generation none;
  return state_->loop ? state_->loop->generation() : none;
}

Result<Generation> Session::generate(std::span<const uint32_t> prompt,
                                     const GenerateOptions& options, const TextSink& sink) {
  TRY(start(prompt, options));
  while (running()) {
    TRY_ASSIGN(const std::string piece, step());
    if (!piece.empty() && sink && !sink(piece)) abort();
  }
  return generation();
}

model::Sequence& engine::SessionSequence::of(Session& session) { return *session.state_->sequence; }

void Session::reset() {
  state_->history.clear();
  state_->loop.reset();
}

const std::vector<uint32_t>& Session::ids() const { return state_->history.ids(); }

Result<std::vector<uint32_t>> Session::next_prompt(std::span<const Message> messages) const {
  return state_->engine.prompts.next(ids(), state_->engine.defaults.stop_ids, messages);
}

Result<std::vector<float>> Session::logits(std::span<const uint32_t> ids) {
  reset();
  TRY(state_->sequence->prefill(0, ids, {}));
  TRY(state_->sequence->harvest(true));
  TRY_ASSIGN(std::vector<float> row, state_->sequence->logits());
  TRY(model::check_finite(row, static_cast<uint32_t>(ids.size()) - 1,
                          state_->engine.info.vocabulary));
  return row;
}

Result<void> Session::all_logits(std::span<const uint32_t> ids, const LogitsSink& sink) {
  reset();
  const auto checked = [&](uint32_t first_row, std::span<const float> logits) -> Result<void> {
    TRY(model::check_finite(logits, first_row, state_->engine.info.vocabulary));
    return sink(first_row, logits);
  };
  return state_->sequence->score(ids, checked, {});
}

}  // namespace tandem
