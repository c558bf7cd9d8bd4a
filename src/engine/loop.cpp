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

Result<void> Loop::start(std::span<const uint32_t> prompt, uint32_t reused,
                         const model::Request& request) {
  started_ = Clock::now();
  max_tokens_ = request.max_tokens;
  generation_.stats.prompt_tokens = static_cast<uint32_t>(prompt.size());
  generation_.stats.reused_tokens = reused;
  TRY(sequence_.prefill(reused, prompt.subspan(reused), request));
  submitted_ = 1;
  return {};
}

Result<std::string> Loop::step(uint32_t rounds_in_flight) {
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
  std::string piece = stops_.push(utf8_.push(tokenizer_.piece(round.token)));
  generation_.text += piece;
  if (stops_.found()) return piece + finish(StopReason::stop_string);
  if (round.stop != ops::StopCode::none) piece += finish(reason(round.stop));
  return piece;
}

std::string Loop::finish(StopReason why) {
  finished_ = true;
  generation_.stop = why;
  std::string rest = stops_.push(utf8_.finish());
  rest += stops_.finish();
  generation_.text += rest;
  return rest;
}

}  // namespace tandem::engine
