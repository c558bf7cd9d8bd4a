// tandem chat: a conversation in the terminal.
#include <fmt/color.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/publication.h"
#include "cli/command.h"
#include "cli/engine_flags.h"
#include "cli/generate_flags.h"
#include "cli/interrupts.h"
#include "cli/output.h"
#include "cli/rounds.h"

namespace tandem::cli {
namespace {

constexpr std::string_view help =
    "A line ends a message; with \\ at its end, the message goes on in the next one.\n"
    "  /reset       forget the conversation\n"
    "  /stats       figures of the last answer\n"
    "  /save FILE   write the conversation as JSON messages; a file that exists is not replaced\n"
    "  /quit        end (or Ctrl-D); Ctrl-C ends an answer only\n";

struct Flags {
  EngineFlags engine;
  GenerateFlags generate;
  std::string system;
};

class Chat {
 public:
  Chat(const Engine& engine, Session session, GenerateOptions options, const std::string& system)
      : engine_(engine), session_(std::move(session)), options_(std::move(options)) {
    if (!system.empty()) system_ = {{"system", system}};
    messages_ = system_;
  }

  Result<void> run();

 private:
  // A message of one or more lines; none at the end of the input.
  Result<std::optional<std::string>> read() const;
  Result<void> answer(const std::string& text);
  Result<void> command(const std::string& line);
  Result<void> save(const std::string& file) const;
  void print_stats() const;
  // Text of the program's own, dim on a terminal.
  void say(std::string_view text) const;

  const Engine& engine_;
  Session session_;
  GenerateOptions options_;
  std::vector<Message> system_;    // how a conversation begins
  std::vector<Message> messages_;  // the conversation
  bool terminal_ = isatty(STDIN_FILENO) != 0 && isatty(STDOUT_FILENO) != 0;
};

void Chat::say(std::string_view text) const {
  if (terminal_) {
    fmt::print(stderr, fmt::emphasis::faint, "{}", text);
  } else {
    fmt::print(stderr, "{}", text);
  }
}

Result<std::optional<std::string>> Chat::read() const {
  std::string message;
  for (bool more = true; more;) {
    if (terminal_) fmt::print(fmt::emphasis::bold, "{} ", message.empty() ? ">" : ".");
    std::fflush(stdout);
    std::string line;
    if (!std::getline(std::cin, line)) {
      if (!interrupted.exchange(false)) {
        if (std::ferror(stdin) != 0 || std::cin.bad()) {
          return fail(ErrorCode::io, "standard input: cannot read: {}", std::strerror(errno));
        }
        if (terminal_) fmt::print("\n");
        return message.empty() ? std::nullopt : std::optional(message);
      }
      // Ctrl-C at the prompt drops what was typed.
      std::cin.clear();
      clearerr(stdin);
      fmt::print("\n");
      message.clear();
      continue;
    }
    if (line.ends_with('\r')) line.pop_back();
    more = line.ends_with('\\');
    if (more) line.back() = '\n';
    message += line;
  }
  return message;
}

Result<void> Chat::run() {
  say(fmt::format("{}{}; /help lists the commands\n", adapter(engine_.info()),
                  describe(*options_.sampling)));
  while (true) {
    TRY_ASSIGN(const std::optional<std::string> text, read());
    if (!text) return {};
    const size_t last = text->find_last_not_of(" \t\n");
    if (last == std::string::npos) continue;
    const bool is_command = text->starts_with('/');
    const std::string line = text->substr(0, last + 1);
    if (line == "/quit") return {};
    const Result<void> done = is_command ? command(line) : answer(*text);
    if (done) continue;
    // A message that does not fit, or a file that cannot be written, ends no conversation.
    if (done.error().code == ErrorCode::device_lost || !terminal_) return done;
    say(fmt::format("{} [{}]\n", done.error().message, name(done.error().code)));
  }
}

Result<void> Chat::answer(const std::string& text) {
  // On a new timeline the whole conversation so far, which is at most the system message.
  std::vector<Message> turn = session_.ids().empty() ? messages_ : std::vector<Message>{};
  turn.push_back({"user", text});
  TRY_ASSIGN(const std::vector<uint32_t> prompt, session_.next_prompt(turn));
  if (prompt.size() > engine_.info().context) {
    return fail(ErrorCode::context_exceeded,
                "the conversation has {} with this message, the context {}; /reset begins a "
                "new one, --context makes room for longer ones",
                counted(prompt.size(), "token"), engine_.info().context);
  }
  interrupted = false;
  TRY(session_.start(prompt, options_));
  while (session_.running()) {
    TRY_ASSIGN(std::string piece, session_.step());
    if (interrupted.exchange(false)) piece += session_.abort();
    piece = answer_text(piece);
    std::fwrite(piece.data(), 1, piece.size(), stdout);
    if (std::fflush(stdout) != 0) {
      return fail(ErrorCode::io, "standard output: cannot write the answer");
    }
  }
  fmt::print("\n");
  std::fflush(stdout);
  const Generation& generation = session_.generation();
  messages_.push_back(turn.back());
  messages_.push_back({"model", generation.text});
  if (generation.stop != StopReason::stop_id) {
    say(fmt::format("(ended by {})\n", name(generation.stop)));
  }
  return {};
}

Result<void> Chat::command(const std::string& line) {
  const size_t space = line.find(' ');
  const std::string name = line.substr(0, space);
  const std::string argument = space == std::string::npos ? "" : line.substr(space + 1);
  if (name == "/save" && !argument.empty()) return save(argument);
  if (!argument.empty() || name == "/save") {
    return fail(ErrorCode::invalid_argument, "{}: expected {}", name,
                name == "/save" ? "/save FILE" : "no argument");
  }
  if (name == "/reset") {
    session_.reset();
    messages_ = system_;
    say("a new conversation\n");
  } else if (name == "/stats") {
    print_stats();
  } else if (name == "/help") {
    say(help);
  } else {
    return fail(ErrorCode::invalid_argument, "{}: no such command; /help lists them", name);
  }
  return {};
}

Result<void> Chat::save(const std::string& file) const {
  nlohmann::json messages = nlohmann::json::array();
  for (const Message& message : messages_) {
    messages.push_back({{"role", message.role}, {"content", message.content}});
  }
  using OnError = nlohmann::json::error_handler_t;
  const std::string text = messages.dump(2, ' ', false, OnError::replace) + "\n";
  TRY_ASSIGN(FilePublication out, FilePublication::begin(file));
  TRY(out.file().write(std::as_bytes(std::span(text))));
  TRY(out.commit());
  say(fmt::format("{}: {}\n", file, counted(messages_.size(), "message")));
  return {};
}

void Chat::print_stats() const {
  const GenerateStats& stats = session_.generation().stats;
  if (stats.prompt_tokens == 0) return say("no answer yet\n");
  say(fmt::format(
      "{} of {}; the last prompt had {}, {} of them reused, first token after "
      "{:.0f} ms; {} at {:.1f} tokens/s{}; {}\n",
      session_.ids().size(), counted(engine_.info().context, "position"),
      counted(stats.prompt_tokens, "token"), stats.reused_tokens, stats.first_token_ms,
      counted(stats.generated_tokens, "token"), stats.decode_tokens_per_second(),
      describe(*options_.sampling), describe_rounds(engine_.info(), options_.mtp, stats)));
}

Result<void> run(const Flags& flags) {
  TRY_ASSIGN(Engine engine, Engine::open(flags.engine.artifact, flags.engine.options()));
  TRY_ASSIGN(const GenerateOptions options, flags.generate.options(engine.info()));
  TRY(engine.check(options));
  TRY_ASSIGN(Session session, engine.session());
  if (!flags.system.empty()) {
    const Message system{"system", flags.system};
    TRY(engine.encode_chat({&system, 1}));
  }
  std::optional<Interrupts> interrupts;  // without a terminal Ctrl-C ends the program
  if (isatty(STDIN_FILENO) != 0) interrupts.emplace({SIGINT});
  return Chat(engine, std::move(session), options, flags.system).run();
}

}  // namespace

Command chat(CLI::App& parent) {
  const auto flags = std::make_shared<Flags>();
  CLI::App* app = parent.add_subcommand("chat", "Talk with a model; it remembers the conversation");
  flags->engine.add(*app);
  flags->generate.add(*app);
  app->add_option("--system", flags->system, "A system message that begins every conversation");
  app->footer(std::string(help));
  return {app, [flags] { return run(*flags); }};
}

}  // namespace tandem::cli
