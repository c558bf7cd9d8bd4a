#include "cli/bench_mtp.h"

#include <fmt/format.h>

#include <chrono>

#include "base/error.h"
#include "cli/measurement.h"
#include "engine/prompt_sets.h"

namespace tandem::cli {
namespace {

using Ids = std::vector<uint32_t>;

struct Prompts {
  std::vector<Ids> prompts;
  bool chat = false;
};

Result<Prompts> encode(const Engine& engine, const engine::PromptSet& set, uint32_t tokens) {
  Prompts result{{}, set.chat};
  for (const std::string_view text : set.prompts) {
    const Message message{"user", std::string(text)};
    TRY_ASSIGN(Ids ids, set.chat ? engine.encode_chat({&message, 1}) : engine.encode(text));
    if (ids.size() + tokens < engine.info().context) result.prompts.push_back(std::move(ids));
  }
  return result;
}

// What all prompts of a set came to, without the first tokens, which belong to the prefills.
struct Pass {
  std::vector<Ids> ids;
  uint32_t tokens = 0;
  uint32_t rounds = 0;
  std::array<uint32_t, 2> drafted = {};
  std::array<uint32_t, 2> accepted = {};
  double ms = 0;

  double tokens_per_second() const { return ms > 0 ? tokens * 1e3 / ms : 0; }
};

Result<Pass> run(Session& session, const Prompts& prompts, uint32_t tokens, Mtp mtp) {
  Pass pass;
  for (const Ids& prompt : prompts.prompts) {
    session.reset();
    TRY_ASSIGN(const Generation generation,
               session.generate(prompt, {.max_tokens = tokens + 1,
                                         .ignore_eos = !prompts.chat,
                                         .sampling = SampleOptions{.temperature = 0},
                                         .mtp = mtp}));
    const GenerateStats& stats = generation.stats;
    pass.ids.push_back(generation.ids);
    pass.tokens += stats.generated_tokens - 1;
    pass.rounds += stats.rounds - 1;
    for (size_t place = 0; place < pass.drafted.size(); ++place) {
      pass.drafted[place] += stats.drafted[place];
      pass.accepted[place] += stats.accepted[place];
    }
    pass.ms += stats.decode_ms;
  }
  return pass;
}

Json to_json(std::string_view name, const Pass& drafted, std::span<const double> plain_rates,
             std::span<const double> mtp_rates) {
  const auto share = [](double part, double whole) { return whole > 0 ? part / whole : 0; };
  const Json plain = rate_samples(plain_rates), mtp = rate_samples(mtp_rates);
  return {{"prompts", name},
          {"plain", plain},
          {"mtp", mtp},
          {"ratio", share(mtp.at("median"), plain.at("median"))},
          {"drafted", drafted.drafted},
          {"accepted", drafted.accepted},
          {"acceptance", share(drafted.accepted[0] + drafted.accepted[1],
                               drafted.drafted[0] + drafted.drafted[1])},
          {"tokens", drafted.tokens},
          {"rounds", drafted.rounds},
          {"tokens_per_round", share(drafted.tokens, drafted.rounds)}};
}

Result<Json> measure(std::string_view name, Session& session, const Prompts& prompts,
                     uint32_t repeat, uint32_t tokens) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> plain_rates, mtp_rates;
  const Clock::time_point start = Clock::now();
  while (true) {
    const bool warm = Clock::now() - start >= warm_up;
    TRY_ASSIGN(const Pass plain, run(session, prompts, tokens, Mtp::off));
    TRY_ASSIGN(const Pass drafted, run(session, prompts, tokens, Mtp::on));
    if (plain.ids != drafted.ids) {
      return fail(ErrorCode::internal,
                  "{}: the tokens with MTP are not those of plain rounds; please report this",
                  name);
    }
    if (!warm) continue;
    plain_rates.push_back(plain.tokens_per_second());
    mtp_rates.push_back(drafted.tokens_per_second());
    if (mtp_rates.size() == repeat) return to_json(name, drafted, plain_rates, mtp_rates);
  }
}

}  // namespace

bool can_bench_mtp(const Engine& engine) {
  const Message message{"user", ""};
  return engine.info().drafts > 0 && engine.encode_chat({&message, 1});
}

Result<Json> bench_mtp(const Engine& engine, Session& session, uint32_t repeat, uint32_t tokens) {
  Json rows = Json::array();
  fmt::print("\n{:<8} {:>9} {:>15} {:>13} {:>6} {:>11} {:>13}\n", "mtp", "prompts",
             "plain tokens/s", "mtp tokens/s", "ratio", "acceptance", "tokens/round");
  for (const engine::PromptSet& set : engine::prompt_sets()) {
    TRY_ASSIGN(const Prompts prompts, encode(engine, set, tokens));
    if (prompts.prompts.empty()) {
      fmt::print("{:<8} {:>9} skipped, as it does not fit a context of {}\n", "", set.name,
                 engine.info().context);
      continue;
    }
    TRY_ASSIGN(Json row, measure(set.name, session, prompts, repeat, tokens));
    const auto number = [&](const Json& value) { return value.get<double>(); };
    fmt::print("{:<8} {:>9} {:>15.1f} {:>13.1f} {:>6.2f} {:>9.0f} % {:>13.2f}\n", "", set.name,
               number(row.at("plain").at("median")), number(row.at("mtp").at("median")),
               number(row.at("ratio")), 100 * number(row.at("acceptance")),
               number(row.at("tokens_per_round")));
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace tandem::cli
