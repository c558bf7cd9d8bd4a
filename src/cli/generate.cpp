// tandem generate: one prompt in, text out as it comes.
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/command.h"
#include "cli/engine_flags.h"
#include "cli/generate_flags.h"
#include "cli/measurement.h"
#include "cli/output.h"
#include "cli/prompt_flags.h"
#include "cli/rounds.h"

namespace tandem::cli {
namespace {

struct Flags {
  EngineFlags engine;
  PromptFlags prompt;
  GenerateFlags generate;
  bool json = false;
  std::string trace;
};

void print_stats(const EngineInfo& info, const Generation& generation,
                 const GenerateOptions& options) {
  const GenerateStats& stats = generation.stats;
  fmt::print(stderr,
             "{}, first token after {:.0f} ms; {} at {:.1f} tokens/s{}, ended by {}; "
             "loaded in {:.0f} ms, compiled in {:.0f} ms\n{}\nadapter: {}\n",
             counted(stats.prompt_tokens, "prompt token"), stats.first_token_ms,
             counted(stats.generated_tokens, "token"), stats.decode_tokens_per_second(),
             describe(*options.sampling), name(generation.stop), info.load_ms, info.compile_ms,
             describe_rounds(info, options.mtp, stats), adapter(info));
}

nlohmann::json to_json(const SampleOptions& sampling) {
  return {{"temperature", sampling.temperature},
          {"top_k", sampling.top_k},
          {"top_p", sampling.top_p},
          {"min_p", sampling.min_p},
          {"repetition_penalty", sampling.repetition_penalty},
          {"penalty_window", sampling.penalty_window},
          {"seed", sampling.seed}};
}

nlohmann::json to_json(const EngineInfo& info, const Generation& generation,
                       const GenerateOptions& options) {
  const GenerateStats& stats = generation.stats;
  nlohmann::json figures{{"prompt_tokens", stats.prompt_tokens},
                         {"reused_tokens", stats.reused_tokens},
                         {"generated_tokens", stats.generated_tokens},
                         {"first_token_ms", stats.first_token_ms},
                         {"decode_ms", stats.decode_ms},
                         {"prefill_tokens_per_second", stats.prefill_tokens_per_second()},
                         {"decode_tokens_per_second", stats.decode_tokens_per_second()},
                         {"load_ms", info.load_ms},
                         {"compile_ms", info.compile_ms},
                         {"gpu_bytes", info.gpu_bytes},
                         {"kernels", info.kernels},
                         {"row_shapes", info.row_shapes},
                         {"row_shapes_different", info.row_shapes_different},
                         {"tuned_shapes", info.tuned_shapes}};
  figures.update(rounds_to_json(info, options.mtp, stats));
  return {{"ids", generation.ids},
          {"text", generation.text},
          {"stop_reason", name(generation.stop)},
          {"sampling", to_json(*options.sampling)},
          {"stats", std::move(figures)},
          {"adapter", info.adapter},
          {"software", info.software},
          {"driver", info.driver},
          {"library", info.library},
          {"tiers", info.tiers},
          {"kv", name(info.kv)},
          {"activations", name(info.activations)},
          {"artifact", info.artifact},
          {"provenance", info.provenance},
          {"kernel_closure", info.kernel_closure}};
}

Result<void> run(const Flags& flags) {
  TRY_ASSIGN(JsonFile trace_file, JsonFile::begin(flags.trace));
  TRY_ASSIGN(Engine engine, Engine::open(flags.engine.artifact, flags.engine.options()));
  TRY_ASSIGN(GenerateOptions options, flags.generate.options(engine.info()));
  std::vector<Json> rounds;
  if (!flags.trace.empty()) {
    options.on_round = [&](const RoundInfo& round) { rounds.push_back(trace_line(round)); };
  }
  TRY_ASSIGN(const std::vector<uint32_t> prompt, flags.prompt.encode(engine));
  TRY_ASSIGN(Session session, engine.session());
  const auto print = [](std::string_view piece) {
    const std::string text = answer_text(piece);
    std::fwrite(text.data(), 1, text.size(), stdout);
    return std::fflush(stdout) == 0;
  };
  TRY_ASSIGN(const Generation generation, session.generate(prompt, options, print));
  if (generation.stop == StopReason::aborted) {
    return fail(ErrorCode::io, "standard output: cannot write the answer");
  }
  TRY(trace_file.write_lines(rounds));
  fmt::print("\n");
  std::fflush(stdout);
  print_stats(engine.info(), generation, options);
  if (flags.json)
    fmt::print("{}\n", to_json(engine.info(), generation, options).dump(-1, ' ', true));
  return {};
}

}  // namespace

Command generate(CLI::App& parent) {
  const auto flags = std::make_shared<Flags>();
  CLI::App* app = parent.add_subcommand("generate", "Answer a prompt, streaming the text");
  flags->engine.add(*app);
  flags->prompt.add(*app);
  flags->generate.add(*app);
  app->add_flag("--json", flags->json,
                "Print a last line of JSON: ids, text, stop_reason, stats, adapter");
  app->add_option("--trace", flags->trace,
                  "A file to make: a line of JSON for each round with position, drafts, targets, "
                  "accepted");
  app->footer("Example: tandem generate models/atlas --chat \"What is the capital of France?\"");
  return {app, [flags] { return run(*flags); }};
}

}  // namespace tandem::cli
