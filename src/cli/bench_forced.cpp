#include "cli/bench_forced.h"

#include <fmt/format.h>

#include "base/clock.h"
#include "base/error.h"
#include "cli/measurement.h"
#include "cli/output.h"
#include "engine/bench.h"

namespace tandem::cli {
namespace {

Result<Json> measure(BenchSession& session, const ForcedRounds& what, uint32_t tokens_per_round) {
  // Whole rounds after the first token.
  const uint32_t rounds = (what.tokens + tokens_per_round - 1) / tokens_per_round;
  const uint32_t tokens = rounds * tokens_per_round + 1;
  std::vector<double> plain_rates, mtp_rates;
  const double start = now_ms();
  while (true) {
    const bool warm = now_ms() - start >= warm_up.count();
    TRY_ASSIGN(const BenchRun plain, session.run(what.depth, tokens, Mtp::off));
    TRY(session.script(engine::forced_drafts(what.depth, plain.generation.ids, tokens_per_round,
                                             session.info().vocabulary)));
    TRY_ASSIGN(const BenchRun mtp, session.run(what.depth, tokens, Mtp::on));
    const GenerateStats& stats = mtp.generation.stats;
    if (mtp.generation.ids != plain.generation.ids || stats.rounds != rounds + 1) {
      return fail(ErrorCode::internal,
                  "{} tokens in each of {} rounds were forced, and {} rounds had {}tokens; please "
                  "report this",
                  tokens_per_round, rounds, stats.rounds - 1,
                  mtp.generation.ids == plain.generation.ids ? "the same " : "other ");
    }
    if (!warm) continue;
    plain_rates.push_back(plain.generation.stats.decode_tokens_per_second());
    mtp_rates.push_back(stats.decode_tokens_per_second());
    if (mtp_rates.size() == what.repeat) break;
  }
  const Json plain = rate_samples(plain_rates), mtp = rate_samples(mtp_rates);
  const double plain_rate = plain.at("median"), mtp_rate = mtp.at("median");
  return Json{{"depth", what.depth},
              {"tokens_per_round", tokens_per_round},
              {"plain", plain},
              {"mtp", mtp},
              {"ratio", mtp_rate / plain_rate},
              {"round_ms", 1e3 * tokens_per_round / mtp_rate},
              {"plain_round_ms", 1e3 / plain_rate}};
}

}  // namespace

Result<Json> bench_forced(BenchSession& session, const ForcedRounds& what) {
  Json rows = Json::array();
  const uint32_t most = session.info().drafts + 1;
  // A round has up to `most` tokens, and the first token comes before them.
  if (uint64_t{what.depth} + what.tokens + most + 1 > session.info().context) {
    fmt::print("\nforced MTP skipped, as {} after {} do not fit a context of {}\n",
               counted(what.tokens, "more token"), what.depth, session.info().context);
    return rows;
  }
  fmt::print("\nMTP at a forced acceptance, depth {}: drafts are replaced after they were made\n",
             what.depth);
  fmt::print("{:>21} {:>15} {:>13} {:>6} {:>12} {:>12}\n", "tokens/round", "plain tokens/s",
             "mtp tokens/s", "ratio", "plain round", "mtp round");
  for (const uint32_t tokens_per_round : what.tokens_per_round) {
    if (tokens_per_round > most) {
      fmt::print("{:>21} skipped, as a round has at most {}\n", tokens_per_round,
                 counted(most, "token"));
      continue;
    }
    TRY_ASSIGN(Json row, measure(session, what, tokens_per_round));
    const auto number = [&](const Json& value) { return value.get<double>(); };
    fmt::print("{:>21} {:>15.1f} {:>13.1f} {:>6.2f} {:>9.3f} ms {:>9.3f} ms\n", tokens_per_round,
               number(row.at("plain").at("median")), number(row.at("mtp").at("median")),
               number(row.at("ratio")), number(row.at("plain_round_ms")),
               number(row.at("round_ms")));
    rows.push_back(std::move(row));
  }
  TRY(session.script({}));
  return rows;
}

}  // namespace tandem::cli
