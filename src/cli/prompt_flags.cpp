#include "cli/prompt_flags.h"

namespace tandem::cli {

void PromptFlags::add(CLI::App& app) {
  auto* group = app.add_option_group("prompt", "What to run (one of these)");
  group->add_option("-p,--prompt", text,
                    "Raw text; control tokens in it are parsed, BOS is put in front");
  group->add_option("--chat", chat, "One message of a user, put in the model's chat turns");
  group->add_option("--ids", ids, "Token ids, for instance 2,10,11")->delimiter(',');
  group->require_option(1);
}

Result<std::vector<uint32_t>> PromptFlags::encode(const Engine& engine) const {
  if (text) return engine.encode(*text);
  if (!chat) return ids;
  const Message message{"user", *chat};
  return engine.encode_chat({&message, 1});
}

}  // namespace tandem::cli
