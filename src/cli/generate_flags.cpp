#include "cli/generate_flags.h"

#include <fmt/format.h>

#include <charconv>
#include <random>

#include "base/error.h"
#include "cli/numbers.h"

namespace tandem::cli {
namespace {

// "300=-1e9"
TokenBias read_bias(const std::string& text) {
  TokenBias bias;
  const char* end = text.data() + text.size();
  const auto [next, error] = std::from_chars(text.data(), end, bias.token);
  const bool has_value = error == std::errc() && next != end && *next == '=' &&
                         CLI::detail::lexical_cast(std::string(next + 1, end), bias.bias);
  if (has_value) return bias;
  throw CLI::ValidationError("--bias",
                             fmt::format("{}: expected ID=VALUE, for instance 300=-1e9", text));
}

uint64_t random_seed() {
  std::random_device device;
  return uint64_t{device()} << 32 | device();
}

}  // namespace

void GenerateFlags::add(CLI::App& app) {
  app.add_option("-n,--max-tokens", generate.max_tokens, "Generate at most this many tokens")
      ->check(CLI::Range(uint32_t{1}, UINT32_MAX))
      ->capture_default_str();
  app.add_flag("--ignore-eos", generate.ignore_eos, "Go on past the model's stop tokens");
  app.add_option("--stop", generate.stop_strings,
                 "End in front of this text; may be given several times")
      ->allow_extra_args(false);
  CLI::Option* with_mtp =
      app.add_flag("--mtp{on}", mtp,
                   "Let the assistant draft in every round; --mtp=auto (the default): as long as "
                   "that is measured to be faster. The tokens are the same")
          ->check(CLI::IsMember({"auto", "on", "off"}));
  app.add_flag_callback(
         "--no-mtp", [this] { mtp = "off"; }, "Plain rounds only")
      ->excludes(with_mtp)
      ->disable_flag_override();

  auto* group = app.add_option_group(
      "sampling", "How tokens are chosen (default: what the artifact's generation config says)");
  group->add_option("--temperature", temperature, "0: greedy");
  group->add_option("--top-k", top_k, "Only the k most likely tokens; 0: all");
  group->add_option("--top-p", top_p, "Only the most likely tokens of this share; 1: all");
  group->add_option("--min-p", min_p,
                    "Only tokens of at least this part of the largest probability; 0: all");
  group->add_option("--repetition-penalty", repetition_penalty, "1: none");
  group->add_option("--penalty-window", penalty_window,
                    "How many of the last tokens the penalty looks at (default: all)");
  group->add_option_function<std::string>(
      "--seed", [this](const std::string& text) { seed = read_whole_number("--seed", text); },
      "The same seed gives the same text (default: a random one)");
  group
      ->add_option_function<std::vector<std::string>>(
          "--bias",
          [this](const std::vector<std::string>& list) {
            for (const std::string& text : list) generate.biases.push_back(read_bias(text));
          },
          "Add VALUE to a token's logit, as ID=VALUE; -1e9 bans it; may be given several times")
      ->allow_extra_args(false);
}

Result<GenerateOptions> GenerateFlags::options(const EngineInfo& info) const {
  const SampleOptions& defaults = info.sampling;
  SampleOptions sampling = defaults;
  sampling.temperature = temperature.value_or(defaults.temperature);
  sampling.top_k = top_k.value_or(defaults.top_k);
  sampling.top_p = top_p.value_or(defaults.top_p);
  sampling.min_p = min_p.value_or(defaults.min_p);
  sampling.repetition_penalty = repetition_penalty.value_or(defaults.repetition_penalty);
  sampling.penalty_window = penalty_window.value_or(defaults.penalty_window);
  if (sampling.temperature == 0 && (top_k || top_p || min_p || seed)) {
    return fail(ErrorCode::invalid_argument,
                "--top-k, --top-p, --min-p and --seed are about sampled answers, and these are "
                "greedy; give a --temperature above 0");
  }
  if (sampling.temperature != 0) sampling.seed = seed ? *seed : random_seed();
  if (mtp == "on" && info.drafts == 0) {
    return fail(
        ErrorCode::invalid_argument,
        "--mtp: no assistant was loaded; leave out --drafts 0, or take an artifact that was "
        "exported with an assistant");
  }
  GenerateOptions options = generate;
  options.sampling = sampling;
  options.mtp = mtp == "on" ? Mtp::on : mtp == "off" ? Mtp::off : Mtp::automatic;
  return options;
}

std::string describe(const SampleOptions& sampling) {
  if (sampling.temperature == 0) return {};
  return fmt::format(" (temperature {}, seed {})", sampling.temperature, sampling.seed);
}

}  // namespace tandem::cli
