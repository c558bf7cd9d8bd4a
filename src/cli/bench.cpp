// tandem bench: how fast an artifact loads, prefills and decodes, with every sample.
#include "engine/bench.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>

#include "base/clock.h"
#include "base/error.h"
#include "cli/bench_forced.h"
#include "cli/bench_mtp.h"
#include "cli/command.h"
#include "cli/measurement.h"
#include "cli/output.h"
#include "engine/opening.h"
#include "engine/session_sequence.h"
#include "model/target_sequence.h"

namespace tandem::cli {
namespace {

struct Flags {
  EngineFlags engine;
  std::vector<uint32_t> depths{128, 512, 2048, 8192};
  std::vector<uint32_t> prefill{128, 512, 2048, 8192};
  std::vector<uint32_t> forced{1, 2, 3};
  uint32_t forced_depth = 512;
  uint32_t repeat = 5;
  uint32_t tokens = 64;
  std::string json;
};

// A rate, in tokens a second, of generations of one shape.
using Rate = double (GenerateStats::*)() const;

// Samples of one table's row.
struct Samples {
  std::vector<double> rates;
  std::vector<double> busy;
};

// One table: a rate at each prompt length that leaves room for `tokens`.
struct Series {
  std::string_view name;
  std::string_view length;  // what the prompt's length is called
  uint32_t tokens;          // generated
  bool with_prefill;        // in each sample
  Rate rate;
};

Result<Samples> sample(BenchSession& session, const Flags& flags, const Series& series,
                       uint32_t prompt_tokens) {
  const auto run = [&]() -> Result<BenchRun> {
    if (series.with_prefill) session.session().reset();
    return session.run(prompt_tokens, series.tokens, Mtp::off);
  };
  session.session().reset();
  const double start = now_ms();
  do {
    TRY(run());
  } while (now_ms() - start < warm_up.count());
  Samples samples;
  for (uint32_t i = 0; i < flags.repeat; ++i) {
    TRY_ASSIGN(const BenchRun took, run());
    samples.rates.push_back((took.generation.stats.*series.rate)());
    samples.busy.push_back(took.busy);
  }
  return samples;
}

const model::TargetSequence* on_gpu(BenchSession& session) {
  return dynamic_cast<const model::TargetSequence*>(
      &engine::SessionSequence::of(session.session()));
}

// What a token must at least move after `depth` others, as far as kernels keep account of it.
uint64_t bytes_per_token(const model::TargetSequence& sequence, uint32_t depth) {
  uint64_t sum = 0;
  for (const gpu::CommandList* list : sequence.method("decode")) {
    for (const gpu::DispatchInfo& dispatch : list->dispatches()) {
      if (dispatch.traffic) sum += gpu::bytes(*dispatch.traffic, {.positions = depth + 1});
    }
  }
  return sum;
}

Result<void> measure(BenchSession& session, const Flags& flags, const Series& series,
                     std::span<const uint32_t> lengths, Json& result) {
  const engine::PromptLengths prompts =
      engine::prompts_in_context(lengths, series.tokens, session.info().context);
  result[series.name] = Json::array();
  result["skipped"][series.name] = prompts.too_long;
  fmt::print("\n{:<8} {:>8}   tokens/s (min .. max)\n", series.name, series.length);
  for (const uint32_t length : prompts.fitting) {
    TRY_ASSIGN(const Samples samples, sample(session, flags, series, length));
    Json row = rate_samples(samples.rates);
    fmt::print("{:<8} {:>8}   {:.1f} ({:.1f} .. {:.1f})", "", length,
               row.at("median").get<double>(), row.at("min").get<double>(),
               row.at("max").get<double>());
    if (!series.with_prefill) {
      const double busy = engine::spread(samples.busy).median;
      fmt::print(", the thread busy for {:.0f} % of the time", 100 * busy);
      row["busy"] = busy;
      if (const auto* sequence = on_gpu(session)) row["bytes"] = bytes_per_token(*sequence, length);
    }
    fmt::print("\n");
    row[series.length] = length;
    result[series.name].push_back(std::move(row));
  }
  if (prompts.too_long.empty()) return {};
  fmt::print("{:<8} skipped, as {} do not fit a context of {}: {}\n", "",
             counted(series.tokens, "more token"), session.info().context,
             fmt::join(prompts.too_long, ", "));
  return {};
}

Result<void> measure_opening(BenchSession& session, const Flags& flags, Json& result) {
  const EngineInfo& info = session.info();
  fmt::print("{}\nload {:.0f} ms ({:.2f} GB/s, verified), compile {:.0f} ms", origin(result),
             info.load_ms, static_cast<double>(info.weight_bytes) / 1e6 / info.load_ms,
             info.compile_ms);
  // The very first generation, with nothing warm.
  const uint32_t first_prompt = std::max(1u, std::min(flags.prefill.front(), info.context - 1));
  TRY_ASSIGN(const BenchRun first, session.run(first_prompt, 1, Mtp::off));
  const double first_ms = first.generation.stats.first_token_ms;
  fmt::print(", first token {:.0f} ms after {}\n", first_ms, counted(first_prompt, "token"));
  result["load_ms"] = info.load_ms;
  result["compile_ms"] = info.compile_ms;
  result["first_token"] = {{"prompt_tokens", first_prompt}, {"ms", first_ms}};
  return {};
}

// Of a GPU: its memory, and what a round submits.
void describe_device(BenchSession& session, Json& result) {
  const EngineInfo& info = session.info();
  const model::TargetSequence* sequence = on_gpu(session);
  if (!sequence) return;
  const uint64_t scratch = info.gpu_bytes - info.weight_bytes - info.session_bytes;
  fmt::print("GPU memory {}: weights {}, the session {}, scratch {}\n", megabytes(info.gpu_bytes),
             megabytes(info.weight_bytes), megabytes(info.session_bytes), megabytes(scratch));
  result["memory"] = {{"gpu_bytes", info.gpu_bytes}, {"session_bytes", info.session_bytes}};
  result["dispatches"] = Json::object();
  for (const char* method : {"decode", "k2_round"}) {
    uint32_t count = 0;
    for (const gpu::CommandList* list : sequence->method(method)) count += list->dispatch_count();
    if (count == 0) continue;
    fmt::print("dispatches of a {}: {}\n", method, count);
    result["dispatches"][method] = count;
  }
}

Result<void> measure_mtp(Engine& engine, BenchSession& session, const Flags& flags, Json& result) {
  // What random weights draft says nothing of an assistant.
  if (engine.info().provenance != "synthetic" && can_bench_mtp(engine)) {
    TRY_ASSIGN(result["mtp"], bench_mtp(engine, session.session(), flags.repeat, flags.tokens));
  }
  TRY_ASSIGN(result["forced"],
             bench_forced(session, {flags.forced, flags.forced_depth, flags.tokens, flags.repeat}));
  return {};
}

Result<void> run(const Flags& flags, const CLI::App& app) {
  TRY_ASSIGN(JsonFile json_file, JsonFile::begin(flags.json));
  const EngineOptions options = flags.engine.options();
  TRY_ASSIGN(Engine engine, engine::open(flags.engine.artifact, options, {.scripted = true}));
  TRY_ASSIGN(BenchSession session, BenchSession::make(engine));
  const EngineInfo& info = engine.info();
  if (info.drafts > 0) TRY(session.script({}));
  Json result = measurement("bench", app, info, options);
  TRY(measure_opening(session, flags, result));
  describe_device(session, result);
  result["repeat"] = flags.repeat;
  result["tokens"] = flags.tokens;
  const Series prefill{"prefill", "tokens", 1, true, &GenerateStats::prefill_tokens_per_second};
  // The first token belongs to the prefill.
  const Series decode{"decode", "depth", flags.tokens + 1, false,
                      &GenerateStats::decode_tokens_per_second};
  TRY(measure(session, flags, prefill, flags.prefill, result));
  TRY(measure(session, flags, decode, flags.depths, result));
  if (info.drafts > 0) TRY(measure_mtp(engine, session, flags, result));
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
  app->add_option("--forced", flags->forced,
                  "Tokens a round to which drafts are forced, where there is an assistant")
      ->delimiter(',')
      ->check(CLI::Range(1, 3))
      ->capture_default_str();
  app->add_option("--forced-depth", flags->forced_depth, "Tokens before those")
      ->check(lengths)
      ->capture_default_str();
  app->add_option("--json", flags->json, "A file to make: every sample, and where it comes from");
  app->footer(
      "Prompts are fixed pseudo-random ids; tokens are chosen greedily and stop tokens ignored. "
      "Each figure is the median of\n"
      "its samples after 200 ms of the same work. A prefill ends when its first token is read.\n"
      "With an assistant, answers to questions, profiles of countries and free text are decoded "
      "with "
      "MTP and without, in turn; so are tokens at an acceptance that is forced. --drafts 0 leaves "
      "all that out.\n"
      "Example: tandem bench ARTIFACT --depths 128,2048 --repeat 5 --json result.json");
  return {app, [flags, app] { return run(*flags, *app); }};
}

}  // namespace tandem::cli
