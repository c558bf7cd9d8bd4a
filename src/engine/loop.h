// One generation: rounds are submitted ahead of their readback, harvested in order, and turned into
// text.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/mtp_policy.h"
#include "model/model.h"
#include "tandem/engine.h"
#include "text/stop_strings.h"
#include "text/tokenizer.h"
#include "text/utf8.h"

namespace tandem::engine {

class Loop {
 public:
  // The policy outlives the loop, as do the sequence and the tokenizer.
  Loop(model::Sequence& sequence, const text::Tokenizer& tokenizer, MtpPolicy& policy,
       text::StopStrings stops, RoundSink on_round)
      : sequence_(sequence),
        tokenizer_(tokenizer),
        policy_(policy),
        stops_(std::move(stops)),
        on_round_(std::move(on_round)) {}

  // Submits the prompt without its first `reused` tokens, whose KV the sequence has.
  Result<void> start(std::span<const uint32_t> prompt, uint32_t reused,
                     const model::Request& request);

  // Submits rounds up to `rounds_in_flight` and returns the text that the oldest completed; nothing
  // while that is not done, but for `wait`.
  Result<std::optional<std::string>> step(uint32_t rounds_in_flight, bool wait);

  // Ends the generation with what was emitted so far and gives the text that was held back; rounds
  // in flight are left to themselves.
  std::string abort() { return finish(StopReason::aborted); }

  bool finished() const { return finished_; }
  const Generation& generation() const { return generation_; }

 private:
  // The text that a round completes. Tokens behind a stop string are discarded.
  std::string take(const model::Round& round);
  std::string take(uint32_t token, ops::StopCode stop);
  void count(const model::Round& round);
  std::string finish(StopReason why);

  model::Sequence& sequence_;
  const text::Tokenizer& tokenizer_;
  MtpPolicy& policy_;
  text::Utf8Stream utf8_;
  text::StopStrings stops_;
  RoundSink on_round_;
  Generation generation_;
  uint32_t max_tokens_ = 0;
  bool finished_ = false;
  double started_ = 0;  // by now_ms
  double first_token_ = 0;
  double last_ = 0;  // when the last round was harvested
};

}  // namespace tandem::engine
