// The command line: picks the subcommand, and turns an error into a message and an exit status (1;
// 2 for wrong usage; as shells say it, 128 and the signal's number where one asked for the end).
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "cli/command.h"
#include "cli/interrupts.h"
#include "cli/output.h"

namespace tandem::cli {
namespace {

// What was printed must have arrived: a full disk or a closed pipe is no success.
Result<void> flush_output() {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return {};
  return fail(ErrorCode::io, "standard output: cannot write: {}", std::strerror(errno));
}

Result<void> run(const Command& command) {
  // Libraries report by exceptions what is out of our hands: no memory, and output that cannot be
  // written.
  try {
    TRY(command.run());
    return flush_output();
  } catch (const std::bad_alloc&) {
    return fail(ErrorCode::out_of_memory, "no memory is left; a smaller context needs less");
  } catch (const std::exception& error) {
    return fail(ErrorCode::io, "{}", error.what());
  }
}

int report(const CLI::App& app, const Error& error) {
  const std::string command = app.get_parent() == nullptr ? "" : " " + app.get_name();
  std::fprintf(stderr, "tandem%s: %s [%s]\n", command.c_str(), error.message.c_str(),
               std::string(name(error.code)).c_str());
  return error.code == ErrorCode::cancelled ? 128 + interrupting_signal() : 1;
}

// A file that is opened in place of a closed standard stream would get what is printed.
void hold_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(stream, F_GETFD) != -1) continue;
    // The wrong way round, so that reading and writing still fail.
    if (open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY) != stream) std::exit(1);
  }
}

// An empty value, as of a variable that is not set, is a mistake where it is not text.
void refuse_empty_values(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    const std::string name = option->get_name();
    const bool is_text =
        name == "--prompt" || name == "--chat" || name == "--system" || name == "--stop";
    if (is_text || option->get_expected_max() == 0) continue;
    option->check([](const std::string& value) {
      return value.empty() ? std::string("the value is empty") : std::string();
    });
  }
  for (CLI::App* part : app.get_subcommands([](CLI::App*) { return true; })) {
    refuse_empty_values(*part);
  }
}

}  // namespace
}  // namespace tandem::cli

int main(int argc, char** argv) {
  using namespace tandem;
  std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is an error, as a full disk is
  cli::hold_standard_streams();
  CLI::App app{"Tandem runs Gemma 4 on WebGPU. `tandem COMMAND --help` explains each command."};
  app.require_subcommand(1);
  app.failure_message([](const CLI::App* command, const CLI::Error& error) {
    const std::vector<std::string> unknown = command->remaining();
    const bool names_no_command = command->get_parent() == nullptr && !unknown.empty();
    return cli::printable_lines(
        (names_no_command ? unknown.front() + ": no such command or option\n" : std::string()) +
        CLI::FailureMessage::simple(command, error));
  });
  app.set_version_flag("--version", "tandem " TANDEM_VERSION);
  const std::vector<cli::Command> commands{
      cli::generate(app),   cli::chat(app),     cli::logits(app),
      cli::score(app),      cli::tokenize(app), cli::export_checkpoint(app),
      cli::synthesize(app), cli::inspect(app),  cli::verify(app),
      cli::devices(app),    cli::bench(app),    cli::profile(app),
      cli::tune(app),       cli::release(app),
  };
  cli::refuse_empty_values(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (app.exit(error) != 0) return 2;
    const Result<void> printed = cli::flush_output();
    return printed ? 0 : cli::report(app, printed.error());
  }
  for (const cli::Command& command : commands) {
    if (!command.app->parsed()) continue;
    const Result<void> result = cli::run(command);
    return result ? 0 : cli::report(*command.app, result.error());
  }
  return 2;
}
