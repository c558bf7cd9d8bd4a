// tandem profile: how long each kernel of prefill, decode and rounds with drafts takes on the GPU.
#include "engine/profile.h"

#include <fmt/format.h>

#include <memory>

#include "base/error.h"
#include "cli/command.h"
#include "cli/measurement.h"
#include "cli/output.h"
#include "engine/bench.h"
#include "engine/open_model.h"
#include "engine/tuning.h"
#include "model/target_sequence.h"

namespace tandem::cli {
namespace {

constexpr uint32_t warm_up_rounds = 4;

struct Flags {
  EngineFlags engine;
  uint32_t tokens = 32;
  uint32_t prompt_tokens = 128;
  std::string json;
  std::string trace;
};

// What one method ran, as often as `runs` says.
struct Method {
  engine::Track track;
  uint64_t runs = 0;
  std::string_view unit;  // of what a run is
  engine::Profile profile;
  std::optional<uint64_t> drafting_ns;  // of a round with drafts: what comes before verifying
};

Method method(std::string_view name, uint64_t runs, std::string_view unit,
              std::vector<engine::SubmissionTimes> times) {
  Method method{{std::string(name), std::move(times)}, runs, unit, {}, {}};
  method.profile = engine::profile(method.track.submissions);
  return method;
}

Result<void> prefill(model::TargetSequence& sequence, std::span<const uint32_t> prompt,
                     uint32_t max_tokens) {
  TRY(sequence.prefill(0, prompt, {.max_tokens = max_tokens}));
  TRY(sequence.harvest(true));
  return {};
}

Result<void> decode(model::TargetSequence& sequence, uint32_t rounds, bool with_drafts,
                    uint32_t rounds_in_flight) {
  for (uint32_t submitted = 0; submitted < rounds || sequence.in_flight() > 0;) {
    if (submitted < rounds && sequence.in_flight() < rounds_in_flight) {
      TRY(sequence.decode(with_drafts));
      ++submitted;
    } else {
      TRY(sequence.harvest(true));
    }
  }
  return {};
}

// What the first `count` dispatches of each submission took.
uint64_t time_of_first(std::span<const engine::SubmissionTimes> submissions, size_t count) {
  uint64_t sum = 0;
  for (const engine::SubmissionTimes& times : submissions) {
    for (const gpu::DispatchTime& time : std::span(times).first(std::min(count, times.size())))
      sum += time.end_ns - time.begin_ns;
  }
  return sum;
}

// One prefill and `rounds` plain rounds after the one that it ends with; then, with an assistant,
// the same with drafts, all of which may be accepted.
Result<std::vector<Method>> run_methods(model::TargetSequence& sequence,
                                        std::span<const uint32_t> prompt, uint32_t rounds,
                                        const model::Capacity& capacity) {
  std::vector<Method> methods;
  TRY(prefill(sequence, prompt, rounds + 1));
  methods.push_back(method("prefill", 1, "prefill", sequence.take_times()));
  TRY(decode(sequence, rounds, false, capacity.rounds_in_flight));
  methods.push_back(method("decode", rounds, "token", sequence.take_times()));
  if (capacity.drafts == 0) return methods;
  TRY(prefill(sequence, prompt, (capacity.drafts + 1) * rounds + 1));
  sequence.take_times();
  TRY(decode(sequence, rounds, true, capacity.rounds_in_flight));
  methods.push_back(method("k2_round", rounds, "round", sequence.take_times()));
  methods.back().drafting_ns = time_of_first(methods.back().track.submissions,
                                             sequence.method("k2_round").front()->dispatch_count());
  return methods;
}

// Rounds past the context's end would compute nothing and seem fast.
Result<void> check_context(const Flags& flags, const model::Capacity& capacity) {
  const uint64_t rows = uint64_t{flags.tokens} * (capacity.drafts + 1);
  if (flags.prompt_tokens + rows <= capacity.context) return {};
  return fail(ErrorCode::context_exceeded,
              "{} and {} run up to {}, the context is {}; raise "
              "--context, or lower --tokens or --prompt-tokens",
              counted(flags.prompt_tokens, "prompt token"), counted(flags.tokens, "round"),
              counted(flags.prompt_tokens + rows, "position"), capacity.context);
}

void print_row(std::string_view name, std::string_view calls, std::string_view time,
               std::string_view bytes, std::string_view rate, std::string_view share) {
  fmt::print("  {:<52} {:>6} {:>12} {:>14} {:>7} {:>6}\n", name, calls, time, bytes, rate, share);
}

void print_method(const Method& method) {
  const engine::Profile& profile = method.profile;
  const auto per_run = [&](uint64_t sum) {
    return static_cast<double>(sum) / static_cast<double>(method.runs);
  };
  const auto microseconds = [&](uint64_t time_ns) {
    return fmt::format("{:.1f}", per_run(time_ns) / 1e3);
  };
  const auto share = [&](uint64_t time_ns) {
    return fmt::format("{:.1f}%", 100 * static_cast<double>(time_ns) /
                                      static_cast<double>(std::max<uint64_t>(1, profile.time_ns)));
  };
  fmt::print("\n{}\n", method.track.name);
  print_row("kernel", "calls", fmt::format("us/{}", method.unit), "bytes", "GB/s", "share");
  for (const engine::KernelProfile& kernel : profile.kernels) {
    const std::optional<double> rate = engine::gigabytes_per_second(kernel);
    print_row(kernel.kernel, fmt::format("{}", kernel.calls / method.runs),
              microseconds(kernel.time_ns),
              kernel.bytes ? fmt::format("{:.0f}", per_run(*kernel.bytes)) : "-",
              rate ? fmt::format("{:.2f}", *rate) : "-", share(kernel.time_ns));
  }
  print_row("total", fmt::format("{}", profile.calls / method.runs), microseconds(profile.time_ns),
            "", "", share(profile.time_ns));
  print_row("gaps between dispatches", "", microseconds(profile.gap_ns), "", "", "");
  if (method.drafting_ns) {
    print_row("of the total, drafting", "", microseconds(*method.drafting_ns), "", "",
              share(*method.drafting_ns));
  }
}

Json to_json(const Method& method) {
  Json kernels = Json::array();
  for (const engine::KernelProfile& kernel : method.profile.kernels) {
    kernels.push_back({{"kernel", kernel.kernel},
                       {"calls", kernel.calls},
                       {"time_ns", kernel.time_ns},
                       {"bytes", kernel.bytes ? Json(*kernel.bytes) : Json()}});
  }
  return {{"method", method.track.name},
          {"unit", method.unit},
          {"runs", method.runs},
          {"calls", method.profile.calls},
          {"time_ns", method.profile.time_ns},
          {"gap_ns", method.profile.gap_ns},
          {"drafting_ns", method.drafting_ns ? Json(*method.drafting_ns) : Json()},
          {"kernels", std::move(kernels)}};
}

Result<void> run(const Flags& flags, const CLI::App& app) {
  const EngineOptions options = flags.engine.options();
  if (options.place == Place::cpu) {
    return fail(ErrorCode::invalid_argument,
                "--device cpu: the times are a GPU's own; leave it out");
  }
  TRY_ASSIGN(JsonFile json_file, JsonFile::begin(flags.json));
  TRY_ASSIGN(JsonFile trace_file, JsonFile::begin(flags.trace));
  if (json_file.path() && json_file.path() == trace_file.path()) {
    return fail(ErrorCode::invalid_argument,
                "--trace {}: expected another file than that of --json", flags.trace);
  }
  TRY_ASSIGN(const engine::OpenedArtifact source,
             engine::open_artifact(flags.engine.artifact, options));
  const artifact::Artifact& artifact = source.artifact;
  TRY_ASSIGN(engine::OpenedModel opened, engine::open_model(artifact, options, {.timed = true}));
  if (!opened.device->info().timestamps) {
    return fail(ErrorCode::unsupported,
                "{} has no timestamps, which a profile is made of; choose another --adapter",
                opened.device->info().name);
  }
  const model::Capacity& capacity = opened.model->capacity();
  TRY(check_context(flags, capacity));
  TRY(engine::load_weights(artifact, *opened.model, options));
  TRY(engine::tune(opened, options));
  TRY_ASSIGN(const auto sequence, model::TargetSequence::make(*opened.target));
  EngineInfo info = engine::describe(artifact, opened);
  info.provenance = name(source.provenance.state);
  const std::vector<uint32_t> prompt =
      engine::ordinary_tokens(info.vocabulary, flags.prompt_tokens);
  TRY(run_methods(*sequence, prompt, warm_up_rounds, capacity));
  TRY_ASSIGN(std::vector<Method> methods, run_methods(*sequence, prompt, flags.tokens, capacity));

  Json result = measurement("profile", app, info, options);
  result["prompt_tokens"] = flags.prompt_tokens;
  result["tokens"] = flags.tokens;
  fmt::print("{}\n{}, then {}\n", origin(result), counted(flags.prompt_tokens, "prompt token"),
             counted(flags.tokens, "token"));
  std::vector<engine::Track> tracks;
  for (Method& method : methods) {
    print_method(method);
    result["methods"].push_back(to_json(method));
    tracks.push_back(std::move(method.track));
  }
  TRY(json_file.write(result));
  return trace_file.write(engine::trace(tracks));
}

}  // namespace

Command profile(CLI::App& parent) {
  const auto flags = std::make_shared<Flags>();
  CLI::App* app = parent.add_subcommand(
      "profile", "Show how long each kernel of prefill, decode and rounds with drafts takes");
  flags->engine.add(*app);
  app->add_option("-n,--tokens", flags->tokens, "Decode rounds to time")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app->add_option("--prompt-tokens", flags->prompt_tokens, "Tokens of the prefill to time")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app->add_option("--json", flags->json, "A file to make: every kernel's calls, time and bytes");
  app->add_option("--trace", flags->trace,
                  "A file to make: every dispatch, as a trace that Perfetto opens");
  app->footer(
      "Each dispatch runs in a pass of its own between two timestamps, so rates are lower than\n"
      "those of `tandem bench`. Bytes are what a kernel must read and write at least once at its\n"
      "shape; '-' where it keeps no account of them. A short run before warms up.\n"
      "Example: tandem profile ARTIFACT -n 64 --prompt-tokens 512 --trace trace.json");
  return {app, [flags, app] { return run(*flags, *app); }};
}

}  // namespace tandem::cli
