// tandem tokenize: text to token ids and back, without a device.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "artifact/artifact.h"
#include "base/error.h"
#include "cli/command.h"
#include "text/chat.h"
#include "text/tokenizer.h"

namespace tandem::cli {
namespace {

struct Flags {
  std::string artifact;
  std::optional<std::string> text;
  std::optional<std::string> chat;
  std::vector<uint32_t> ids;
};

Result<std::vector<uint32_t>> encode(const Flags& flags, const artifact::Artifact& artifact,
                                     const text::Tokenizer& tokenizer) {
  if (flags.text) return tokenizer.encode_prompt(*flags.text);
  const auto& chat_template = artifact.manifest().chat_template;
  if (!chat_template) {
    return fail(ErrorCode::unsupported, "{}: the artifact has no chat template; use -p",
                flags.artifact);
  }
  TRY_ASSIGN(const text::Chat chat, text::Chat::open(chat_template->sha256, tokenizer));
  const Message message{"user", *flags.chat};
  return chat.begin(tokenizer, {&message, 1});
}

Result<void> run(const Flags& flags) {
  TRY_ASSIGN(const artifact::Artifact artifact, artifact::Artifact::open(flags.artifact));
  TRY_ASSIGN(const text::Tokenizer tokenizer,
             text::Tokenizer::load(std::as_bytes(std::span(artifact.tokenizer()))));
  if (!flags.ids.empty()) {
    TRY_ASSIGN(const std::string text, tokenizer.decode(flags.ids));
    fmt::print("{}\n", text);
    return {};
  }
  TRY_ASSIGN(const std::vector<uint32_t> ids, encode(flags, artifact, tokenizer));
  for (uint32_t id : ids) {
    // Quoted as JSON, so that spaces, newlines and bytes that are no text show.
    const std::string piece(tokenizer.piece(id));
    fmt::print(
        "{:>7}  {}\n", id,
        nlohmann::json(piece).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  }
  fmt::print("{}\n", fmt::join(ids, ","));
  return {};
}

}  // namespace

Command tokenize(CLI::App& parent) {
  const auto flags = std::make_shared<Flags>();
  CLI::App* app =
      parent.add_subcommand("tokenize", "Show the token ids of a text, or the text of ids");
  app->add_option("artifact", flags->artifact, "Folder of the artifact")->required();
  auto* group = app->add_option_group("input", "What to convert (one of these)");
  group->add_option("-p,--prompt", flags->text, "Raw text, as `tandem generate -p` takes it");
  group->add_option("--chat", flags->chat, "One message of a user, in the model's chat turns");
  group->add_option("--ids", flags->ids, "Token ids, for instance 2,10,11")->delimiter(',');
  group->require_option(1);
  app->footer("Prints one line for each token, and all ids on the last line.");
  return {app, [flags] { return run(*flags); }};
}

}  // namespace tandem::cli
