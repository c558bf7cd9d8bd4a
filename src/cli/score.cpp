// tandem score: the perplexity of a text.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/parallel.h"
#include "cli/command.h"
#include "cli/engine_flags.h"
#include "cli/output.h"
#include "text/utf8.h"

namespace tandem::cli {
namespace {

constexpr uint64_t max_text_bytes = 1 << 30;

struct Flags {
  EngineFlags engine;
  std::string file;
  bool json = false;
};

struct Score {
  uint64_t tokens = 0;
  uint64_t windows = 0;
  double nll = 0;  // the sum of all tokens' negative log-likelihoods, in nats
  double seconds = 0;

  double mean_nll() const { return nll / static_cast<double>(tokens); }
  double perplexity() const { return std::exp(mean_nll()); }
  double tokens_per_second() const { return static_cast<double>(tokens) / seconds; }
};

Result<std::string> read_text(const std::string& file) {
  TRY_ASSIGN(std::string text, read_file(file, max_text_bytes, Links::follow));
  const size_t valid = text::valid_utf8(text);
  if (valid == text.size()) return text;
  return fail(ErrorCode::malformed_text, "{}: expected UTF-8 text, found other bytes at offset {}",
              file, valid);
}

double negative_log_softmax(std::span<const float> logits, uint32_t token) {
  const double largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - largest);
  return largest + std::log(sum) - logits[token];
}

// Adds a window: `ids` are BOS and the tokens to score, each of them given all before it.
Result<void> score_window(Session& session, std::span<const uint32_t> ids, uint64_t vocabulary,
                          Score& score) {
  const auto add = [&](uint32_t first_row, std::span<const float> logits) -> Result<void> {
    std::vector<double> rows(logits.size() / vocabulary);
    parallel_for(rows.size(), 1, [&](uint64_t begin, uint64_t end) {
      for (uint64_t row = begin; row < end; ++row) {
        rows[row] = negative_log_softmax(logits.subspan(row * vocabulary, vocabulary),
                                         ids[first_row + row + 1]);
      }
    });
    for (const double nll : rows) score.nll += nll;
    return {};
  };
  TRY(session.all_logits(ids.first(ids.size() - 1), add));
  score.tokens += ids.size() - 1;
  ++score.windows;
  return {};
}

Result<Score> score_text(Engine& engine, std::span<const uint32_t> ids) {
  TRY_ASSIGN(Session session, engine.session());
  const auto begin = std::chrono::steady_clock::now();
  Score score;
  std::vector<uint32_t> window;
  const auto progress = progress_bar("scoring");
  const size_t window_tokens = engine.info().context - 1;
  for (size_t next = 1; next < ids.size(); next += window_tokens) {
    const auto tokens = ids.subspan(next, std::min(window_tokens, ids.size() - next));
    window.assign({ids[0]});
    window.insert(window.end(), tokens.begin(), tokens.end());
    TRY(score_window(session, window, engine.info().vocabulary, score));
    if (progress) progress(score.tokens, ids.size() - 1);
  }
  score.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return score;
}

void print(const Flags& flags, const EngineInfo& info, const Score& score) {
  if (!flags.json) {
    fmt::print(
        "{}: {} in {} of {}, mean negative log-likelihood {:.6f} nats, perplexity "
        "{:.4f}; {:.1f} tokens/s, adapter: {}\n",
        printable(flags.file), counted(score.tokens, "token"), counted(score.windows, "window"),
        info.context, score.mean_nll(), score.perplexity(), score.tokens_per_second(),
        adapter(info));
    return;
  }
  const nlohmann::json json = {{"file", flags.file},
                               {"tokens", score.tokens},
                               {"windows", score.windows},
                               {"context", info.context},
                               {"mean_nll", score.mean_nll()},
                               {"perplexity", score.perplexity()},
                               {"tokens_per_second", score.tokens_per_second()},
                               {"adapter", info.adapter},
                               {"software", info.software},
                               {"kv", name(info.kv)},
                               {"activations", name(info.activations)},
                               {"artifact", info.artifact},
                               {"kernel_closure", info.kernel_closure}};
  fmt::print("{}\n", json.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace));
}

Result<void> run(const Flags& flags) {
  TRY_ASSIGN(const std::string text, read_text(flags.file));
  TRY_ASSIGN(Engine engine, Engine::open(flags.engine.artifact, flags.engine.options()));
  TRY_ASSIGN(const std::vector<uint32_t> ids, engine.encode(text));
  if (ids.size() < 2) {
    return fail(ErrorCode::invalid_argument,
                "{}: expected at least one token after BOS, found none", flags.file);
  }
  if (engine.info().context < 2) {
    return fail(ErrorCode::invalid_argument,
                "--context: expected at least 2, BOS and a token to score, found {}",
                engine.info().context);
  }
  TRY_ASSIGN(const Score score, score_text(engine, ids));
  print(flags, engine.info(), score);
  return {};
}

}  // namespace

Command score(CLI::App& parent) {
  const auto flags = std::make_shared<Flags>();
  CLI::App* app = parent.add_subcommand("score", "The perplexity of a text file on the model");
  flags->engine.add(*app);
  app->add_option("file", flags->file, "UTF-8 text; control tokens in it are parsed")->required();
  app->add_flag("--json", flags->json, "Print one line of JSON");
  app->footer(
      "The text's tokens are cut into windows of one less than the context that do not overlap. "
      "Each runs from\nposition 0 behind a BOS of its own; every token but BOS is scored once, "
      "given "
      "what is before it in its\nwindow. Perplexity is the exponential of the mean negative "
      "log-likelihood. A shorter context scores worse:\ncompare only figures of the same one.\n"
      "Example: tandem score models/atlas text.txt --context 512");
  return {app, [flags] { return run(*flags); }};
}

}  // namespace tandem::cli
