// tandem bench: how fast an artifact loads, prefills and decodes, with every sample.
#include "engine/bench.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <memory>

#include "base/error.h"
#include "cli/bench_mtp.h"
#include "cli/command.h"
#include "cli/measurement.h"
#include "tandem/engine.h"

namespace tandem::cli {
namespace {

struct Flags {
  EngineFlags engine;
  std::vector<uint32_t> depths{128, 512, 2048, 8192};
  std::vector<uint32_t> prefill{128, 512, 2048};
  uint32_t repeat = 5;
  uint32_t tokens = 64;
  std::string json;
};

// What all measurements run on.
struct Subject {
  const EngineInfo& info;
  Session session;
};

Result<GenerateStats> generate(Subject& subject, uint32_t prompt_tokens, uint32_t tokens) {
  const std::vector<uint32_t> prompt =
      engine::ordinary_tokens(subject.info.vocabulary, prompt_tokens);
  subject.session.reset();
  TRY_ASSIGN(const Generation generation,
             subject.session.generate(prompt, {.max_tokens = tokens,
                                               .ignore_eos = true,
                                               .sampling = SampleOptions{.temperature = 0},
                                               .mtp = Mtp::off}));
  if (generation.ids.size() == tokens) return generation.stats;
  return fail(ErrorCode::internal, "{} tokens after {} were asked for and {} came (ended by {})",
              tokens, prompt_tokens, generation.ids.size(), name(generation.stop));
}

// A rate, in tokens a second, of generations of one shape.
using Rate = double (GenerateStats::*)() const;

Result<Json> sample(Subject& subject, const Flags& flags, uint32_t prompt_tokens, uint32_t tokens,
                    Rate rate) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  do {
    TRY(generate(subject, prompt_tokens, tokens));
  } while (Clock::now() - start < warm_up);
  std::vector<double> samples;
  for (uint32_t i = 0; i < flags.repeat; ++i) {
    TRY_ASSIGN(const GenerateStats stats, generate(subject, prompt_tokens, tokens));
    samples.push_back((stats.*rate)());
  }
  return rate_samples(samples);
}

// One table: a rate at each prompt length that leaves room for `tokens`.
struct Series {
  std::string_view name;
  std::string_view length;  // what the prompt's length is called
  uint32_t tokens;          // generated
  Rate rate;
};

Result<void> measure(Subject& subject, const Flags& flags, const Series& series,
                     std::span<const uint32_t> lengths, Json& result) {
  const engine::PromptLengths prompts =
      engine::prompts_in_context(lengths, series.tokens, subject.info.context);
  result[series.name] = Json::array();
  result["skipped"][series.name] = prompts.too_long;
  fmt::print("\n{:<8} {:>8}   tokens/s (min .. max)\n", series.name, series.length);
  for (const uint32_t length : prompts.fitting) {
    TRY_ASSIGN(Json row, sample(subject, flags, length, series.tokens, series.rate));
    fmt::print("{:<8} {:>8}   {:.1f} ({:.1f} .. {:.1f})\n", "", length,
               row.at("median").get<double>(), row.at("min").get<double>(),
               row.at("max").get<double>());
    row[series.length] = length;
    result[series.name].push_back(std::move(row));
  }
  if (prompts.too_long.empty()) return {};
  fmt::print("{:<8} skipped, as {} more tokens do not fit a context of {}: {}\n", "", series.tokens,
             subject.info.context, fmt::join(prompts.too_long, ", "));
  return {};
}

Result<void> run(const Flags& flags, const CLI::App& app) {
  TRY_ASSIGN(JsonFile json_file, JsonFile::begin(flags.json));
  const EngineOptions options = flags.engine.options();
  TRY_ASSIGN(Engine engine, Engine::open(flags.engine.artifact, options));
  const EngineInfo& info = engine.info();
  TRY_ASSIGN(Session session, engine.session());
  Subject subject{info, std::move(session)};
  Json result = measurement("bench", app, info, options);
  fmt::print("{}\nload {:.0f} ms, compile {:.0f} ms", origin(result), info.load_ms,
             info.compile_ms);

  // The very first generation, with nothing warm.
  const uint32_t first_prompt = std::max(1u, std::min(flags.prefill.front(), info.context - 1));
  TRY_ASSIGN(const GenerateStats first, generate(subject, first_prompt, 1));
  fmt::print(", first token {:.0f} ms after {} tokens\n", first.first_token_ms, first_prompt);
  result["load_ms"] = info.load_ms;
  result["compile_ms"] = info.compile_ms;
  result["first_token"] = {{"prompt_tokens", first_prompt}, {"ms", first.first_token_ms}};
  result["repeat"] = flags.repeat;
  result["tokens"] = flags.tokens;
  const Series prefill{"prefill", "tokens", 1, &GenerateStats::prefill_tokens_per_second};
  // The first token belongs to the prefill.
  const Series decode{"decode", "depth", flags.tokens + 1,
                      &GenerateStats::decode_tokens_per_second};
  TRY(measure(subject, flags, prefill, flags.prefill, result));
  TRY(measure(subject, flags, decode, flags.depths, result));
  // What random weights draft says nothing of an assistant.
  if (info.provenance != "synthetic" && can_bench_mtp(engine)) {
    TRY_ASSIGN(result["mtp"], bench_mtp(engine, subject.session, flags.repeat, flags.tokens));
  }
  return json_file.write(result);
}

}  // namespace

Command bench(CLI::App& parent) {
  const auto flags = std::make_shared<Flags>();
  CLI::App* app =
      parent.add_subcommand("bench", "Measure load, compile, first token, prefill and decode");
  flags->engine.add(*app);
  const CLI::Range lengths(1, 1 << 20);
  app->add_option("--depths", flags->depths, "Tokens before those whose decoding is measured")
      ->delimiter(',')
      ->check(lengths)
      ->capture_default_str();
  app->add_option("--prefill", flags->prefill, "Prompt lengths whose prefill is measured")
      ->delimiter(',')
      ->check(lengths)
      ->capture_default_str();
  app->add_option("--repeat", flags->repeat, "Samples of each")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app->add_option("-n,--tokens", flags->tokens, "Tokens that a sample of decoding generates")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app->add_option("--json", flags->json, "A file to make: every sample, and where it comes from");
  app->footer(
      "Prompts are fixed pseudo-random ids; tokens are chosen greedily and stop tokens ignored. "
      "Each figure is the median of\n"
      "its samples after 200 ms of the same work. A prefill ends when its first token is read.\n"
      "With an assistant, answers to questions, profiles of countries and free text are decoded "
      "with "
      "MTP and without, in turn.\n"
      "Example: tandem bench ARTIFACT --depths 128,2048 --repeat 5 --json result.json");
  return {app, [flags, app] { return run(*flags, *app); }};
}

}  // namespace tandem::cli
