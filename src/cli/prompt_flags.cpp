// Registers the options of a prompt.
#include "cli/prompt_flags.h"

#include <fmt/format.h>

#include <charconv>

namespace tandem::cli {
namespace {

// "2,10,11", decimal digits only: an empty or octal-looking list must not run other ids than it
// seems to say.
std::vector<uint32_t> read_ids(const std::string& list) {
  std::vector<uint32_t> ids;
  const char* at = list.data();
  const char* end = at + list.size();
  while (true) {
    uint32_t id = 0;
    const auto [next, error] = std::from_chars(at, end, id);
    if (error != std::errc() || (next != end && *next != ',')) {
      throw CLI::ValidationError(
          "--ids", fmt::format("{}: expected decimal ids, for instance 2,10,11", list));
    }
    ids.push_back(id);
    if (next == end) return ids;
    at = next + 1;
  }
}

}  // namespace

void PromptFlags::add(CLI::App& app) {
  auto* group = app.add_option_group("prompt", "What to run (one of these)");
  group->add_option("-p,--prompt", text,
                    "Raw text; control tokens in it are parsed, BOS is put in front");
  group->add_option("--chat", chat, "One message of a user, put in the model's chat turns");
  group->add_option_function<std::string>(
      "--ids", [this](const std::string& list) { ids = read_ids(list); },
      "Token ids, for instance 2,10,11");
  group->require_option(1);
}

}  // namespace tandem::cli
