// The generation loop.
#include "engine/loop.h"

#include "base/error.h"

namespace tandem::engine {
namespace {

StopReason reason(ops::StopCode code) {
  switch (code) {
    case ops::StopCode::stop_id:
      return StopReason::stop_id;
    case ops::StopCode::context:
      return StopReason::context;
    default:
      return StopReason::length;
  }
}

double milliseconds(std::chrono::steady_clock::duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

}  // namespace

Result<void> Loop::start(std::span<const uint32_t> prompt, const model::Budget& budget) {
  started_ = Clock::now();
  max_tokens_ = budget.max_tokens;
  generation_.stats.prompt_tokens = static_cast<uint32_t>(prompt.size());
  TRY(sequence_.prefill(0, prompt, budget));
  submitted_ = 1;
  return {};
}

Result<std::string> Loop::step(uint32_t rounds_in_flight) {
  if (finished_) return std::string();
  while (submitted_ < max_tokens_ && sequence_.in_flight() < rounds_in_flight) {
    TRY(sequence_.decode());
    ++submitted_;
  }
  TRY_ASSIGN(const std::optional<model::Round> round, sequence_.harvest(true));
  if (round) return take(*round);
  return fail(ErrorCode::internal,
              "{} tokens were generated and no round is left; please report this",
              generation_.ids.size());
}

std::string Loop::take(const model::Round& round) {
  const Clock::time_point now = Clock::now();
  GenerateStats& stats = generation_.stats;
  if (generation_.ids.empty()) {
    first_token_ = now;
    stats.first_token_ms = milliseconds(now - started_);
  }
  stats.decode_ms = milliseconds(now - first_token_);
  ++stats.rounds;
  ++stats.generated_tokens;
  generation_.ids.push_back(round.token);
  if (round.stop == ops::StopCode::stop_id) return finish(StopReason::stop_id);
  std::string piece = utf8_.push(tokenizer_.piece(round.token));
  generation_.text += piece;
  if (round.stop != ops::StopCode::none) piece += finish(reason(round.stop));
  return piece;
}

std::string Loop::finish(StopReason why) {
  finished_ = true;
  generation_.stop = why;
  std::string rest = utf8_.finish();
  generation_.text += rest;
  return rest;
}

void Loop::abort() {
  if (!finished_) finish(StopReason::aborted);
}

}  // namespace tandem::engine
