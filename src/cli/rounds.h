// How the rounds of a generation are told: in words, as JSON, and one by one.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "tandem/engine.h"

namespace tandem::cli {

// "auto", "on" or "off"; always "off" where the engine has no assistant.
std::string_view mtp_mode(const EngineInfo& info, Mtp mtp);

// "mtp auto: 9 rounds, 8 with drafts, 2.6 tokens per round, ..."; warns where most drafts were in
// vain.
std::string describe_rounds(const EngineInfo& info, Mtp mtp, const GenerateStats& stats);

// The keys of "stats" that are about rounds.
nlohmann::json rounds_to_json(const EngineInfo& info, Mtp mtp, const GenerateStats& stats);

// A line of a trace.
nlohmann::json trace_line(const RoundInfo& round);

}  // namespace tandem::cli
