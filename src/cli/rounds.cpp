#include "cli/rounds.h"

#include <fmt/format.h>

#include "cli/output.h"

namespace tandem::cli {
namespace {

// Fewer drafts verified say nothing yet.
constexpr uint32_t enough_drafts = 32;
// Below it a round with drafts hardly pays for its two more rows.
constexpr double low_acceptance = 0.2;

double percent(double share) { return 100 * share; }

}  // namespace

std::string_view mtp_mode(const EngineInfo& info, Mtp mtp) {
  if (info.drafts == 0 || mtp == Mtp::off) return "off";
  return mtp == Mtp::on ? "on" : "auto";
}

std::string describe_rounds(const EngineInfo& info, Mtp mtp, const GenerateStats& stats) {
  std::string text = fmt::format("mtp {}: {}", mtp_mode(info, mtp), counted(stats.rounds, "round"));
  const uint32_t drafted = stats.drafted[0] + stats.drafted[1];
  if (drafted == 0) return text;
  text +=
      fmt::format(", {} with drafts, {:.2f} tokens per round, accepted {:.0f} % of first drafts",
                  stats.drafted[0], stats.tokens_per_round(), percent(stats.acceptance(0)));
  if (stats.drafted[1] > 0) {
    text += fmt::format(" and {:.0f} % of second ones", percent(stats.acceptance(1)));
  }
  if (stats.discarded > 0) text += fmt::format(", discarded {}", stats.discarded);
  if (drafted < enough_drafts || stats.acceptance() >= low_acceptance) return text;
  return text + fmt::format("; warning: acceptance {:.0f} %", percent(stats.acceptance()));
}

nlohmann::json rounds_to_json(const EngineInfo& info, Mtp mtp, const GenerateStats& stats) {
  return {{"mtp", mtp_mode(info, mtp)},
          {"rounds", stats.rounds},
          {"rounds_with_drafts", stats.drafted[0]},
          {"tokens_per_round", stats.tokens_per_round()},
          {"drafted", stats.drafted},
          {"accepted", stats.accepted},
          {"acceptance", {stats.acceptance(0), stats.acceptance(1)}},
          {"discarded", stats.discarded}};
}

nlohmann::json trace_line(const RoundInfo& round) {
  return {{"position", round.position},
          {"drafts", round.drafts},
          {"targets", round.targets},
          {"accepted", round.accepted}};
}

}  // namespace tandem::cli
