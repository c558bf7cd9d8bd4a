// The generation loop.
#include "engine/loop.h"

#include "base/clock.h"
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

}  // namespace

Result<void> Loop::start(std::span<const uint32_t> prompt, uint32_t reused,
                         const model::Request& request) {
  started_ = last_ = now_ms();
  max_tokens_ = request.max_tokens;
  generation_.stats.prompt_tokens = static_cast<uint32_t>(prompt.size());
  generation_.stats.reused_tokens = reused;
  TRY(sequence_.prefill(reused, prompt.subspan(reused), request));
  return {};
}

Result<std::optional<std::string>> Loop::step(uint32_t rounds_in_flight, bool wait) {
  const uint64_t emitted = generation_.ids.size();
  while (emitted + sequence_.in_flight() < max_tokens_ &&
         sequence_.in_flight() < rounds_in_flight) {
    TRY(sequence_.decode(policy_.drafts()));
  }
  const uint32_t in_flight = sequence_.in_flight();
  TRY_ASSIGN(const std::optional<model::Round> round, sequence_.harvest(wait));
  if (round) return take(*round);
  if (!wait && in_flight > 0 && sequence_.in_flight() == in_flight) return std::nullopt;
  return fail(ErrorCode::internal,
              "{} tokens were generated and no round is left; please report this",
              generation_.ids.size());
}

std::string Loop::take(const model::Round& round) {
  count(round);
  std::string text;
  for (size_t i = 0; i < round.count && !finished_; ++i) {
    const bool last = i + 1 == round.count;
    text += take(round.targets[i], last ? round.stop : ops::StopCode::none);
  }
  GenerateStats& stats = generation_.stats;
  const uint32_t generated = static_cast<uint32_t>(generation_.ids.size());
  stats.discarded += stats.generated_tokens + round.accepted + 1 - generated;
  stats.generated_tokens = generated;
  return text;
}

std::string Loop::take(uint32_t token, ops::StopCode stop) {
  generation_.ids.push_back(token);
  if (stop == ops::StopCode::stop_id) return finish(StopReason::stop_id);
  std::string piece = stops_.push(utf8_.push(tokenizer_.piece(token)));
  generation_.text += piece;
  if (stops_.found()) return piece + finish(StopReason::stop_string);
  if (stop != ops::StopCode::none) piece += finish(reason(stop));
  return piece;
}

void Loop::count(const model::Round& round) {
  const double now = now_ms();
  GenerateStats& stats = generation_.stats;
  if (stats.rounds == 0) {
    first_token_ = now;
    stats.first_token_ms = now - started_;
  } else {
    policy_.add(round.rows > 1, now - last_, round.count);
  }
  last_ = now;
  stats.decode_ms = now - first_token_;
  ++stats.rounds;
  for (uint32_t i = 0; i + 1 < round.rows; ++i) {
    ++stats.drafted[i];
    if (i < round.accepted) ++stats.accepted[i];
  }
  if (!on_round_) return;
  on_round_({.position = round.position,
             .drafts = {round.drafts.begin(), round.drafts.begin() + (round.rows - 1)},
             .targets = {round.targets.begin(), round.targets.begin() + round.rows},
             .accepted = round.accepted});
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
