// MTP beside plain rounds at an acceptance that is forced: what a round costs, whatever an
// assistant is worth.
#pragma once

#include <span>

#include "base/json.h"
#include "cli/bench_session.h"

namespace tandem::cli {

struct ForcedRounds {
  std::span<const uint32_t> tokens_per_round;
  uint32_t depth;   // tokens of the prompt
  uint32_t tokens;  // generated after the first, at least
  uint32_t repeat;
};

// Prints a table and gives its rows, one for each number of tokens in a round that its drafts
// allow; none if the context is too short. Fails if the tokens differ.
Result<Json> bench_forced(BenchSession& session, const ForcedRounds& what);

}  // namespace tandem::cli
