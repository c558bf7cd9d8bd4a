// One generation: rounds are submitted ahead of their readback, harvested in order, and turned into
// text.
#pragma once

#include <chrono>
#include <span>
#include <string>
#include <vector>

#include "model/model.h"
#include "tandem/engine.h"
#include "text/tokenizer.h"
#include "text/utf8.h"

namespace tandem::engine {

class Loop {
 public:
  Loop(model::Sequence& sequence, const text::Tokenizer& tokenizer)
      : sequence_(sequence), tokenizer_(tokenizer) {}

  // Submits the prompt; `budget` bounds what follows.
  Result<void> start(std::span<const uint32_t> prompt, const model::Budget& budget);

  // Submits rounds up to `rounds_in_flight`, waits for the oldest and returns the text that it
  // completed.
  Result<std::string> step(uint32_t rounds_in_flight);

  // Ends the generation with what was emitted so far; rounds in flight are left to themselves.
  void abort();

  bool finished() const { return finished_; }
  const Generation& generation() const { return generation_; }

 private:
  using Clock = std::chrono::steady_clock;
  std::string take(const model::Round& round);
  std::string finish(StopReason reason);

  model::Sequence& sequence_;
  const text::Tokenizer& tokenizer_;
  text::Utf8Stream utf8_;
  Generation generation_;
  uint32_t max_tokens_ = 0;
  uint32_t submitted_ = 0;
  bool finished_ = false;
  Clock::time_point started_;
  Clock::time_point first_token_;
};

}  // namespace tandem::engine
