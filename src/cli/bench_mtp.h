// MTP beside plain: the same prompts with drafts and without, in turn, in one engine.
#pragma once

#include "base/json.h"
#include "tandem/engine.h"

namespace tandem::cli {

// Whether drafts can be measured on text: there is an assistant, and chat turns that Tandem knows.
bool can_bench_mtp(const Engine& engine);

// Prints a table and gives its rows, one for each prompt set that leaves room for `tokens` after
// the first in the context. Fails if the tokens differ.
Result<Json> bench_mtp(const Engine& engine, Session& session, uint32_t repeat, uint32_t tokens);

}  // namespace tandem::cli
