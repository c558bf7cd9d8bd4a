// The known chat templates, as data, and their rendering.
#include "text/chat.h"

#include <algorithm>

#include "text/utf8.h"

namespace tandem::text {

// A turn is: open, role, role_end, trimmed content, close, turn_end. `open` and `close` are control
// tokens; an answer begins after open, answer_role and role_end.
struct ChatRule {
  std::string_view template_sha256;
  std::string_view open;
  std::string_view close;
  std::string_view role_end;
  std::string_view turn_end;
  std::string_view answer_role;
};

namespace {

constexpr ChatRule rules[] = {
    {"35a568ab950eaecb817d9dd7efb625aac651289deb6fcf008414a43f5514285d", "<|turn>", "<turn|>", "\n",
     "\n", "model"},
};

// What Python's str.strip, and so a template's trim, removes.
bool is_space(uint32_t codepoint) {
  return (codepoint >= 0x09 && codepoint <= 0x0D) || (codepoint >= 0x1C && codepoint <= 0x20) ||
         codepoint == 0x85 || codepoint == 0xA0 || codepoint == 0x1680 ||
         (codepoint >= 0x2000 && codepoint <= 0x200A) || codepoint == 0x2028 ||
         codepoint == 0x2029 || codepoint == 0x202F || codepoint == 0x205F || codepoint == 0x3000;
}

// Bytes that are not UTF-8 are left for the tokenizer to refuse.
std::string_view trim(std::string_view text) {
  size_t begin = text.size();
  size_t end = 0;
  for (size_t at = 0; at < text.size();) {
    const Character character = first_character(text.substr(at));
    const bool whole = character.state == Character::State::whole;
    const size_t after = at + (whole ? character.bytes : 1);
    if (!whole || !is_space(character.codepoint)) {
      begin = std::min(begin, at);
      end = after;
    }
    at = after;
  }
  return begin < end ? text.substr(begin, end - begin) : std::string_view();
}

Result<uint32_t> control_token(const Tokenizer& tokenizer, std::string_view content) {
  const AddedToken* token = tokenizer.added_token(content);
  if (!token || !token->special) {  // text could spell one that is not special
    return fail(ErrorCode::malformed_text,
                "chat template: the tokenizer has no special token '{}', which the template uses; "
                "export the model with the checkpoint's own tokenizer.json",
                content);
  }
  return token->id;
}

Result<void> append_text(const Tokenizer& tokenizer, std::string_view text,
                         std::vector<uint32_t>& ids) {
  TRY_ASSIGN(const std::vector<uint32_t> more, tokenizer.encode(text));
  ids.insert(ids.end(), more.begin(), more.end());
  return {};
}

}  // namespace

Result<Chat> Chat::open(const Digest& chat_template, const Tokenizer& tokenizer) {
  const std::string digest = chat_template.hex();
  for (const ChatRule& rule : rules) {
    if (rule.template_sha256 != digest) continue;
    TRY_ASSIGN(const uint32_t open, control_token(tokenizer, rule.open));
    TRY_ASSIGN(const uint32_t close, control_token(tokenizer, rule.close));
    return Chat(rule, open, close);
  }
  return fail(
      ErrorCode::unsupported,
      "chat template: Tandem does not know the one with sha256 {}; write the turns yourself "
      "as a raw prompt",
      digest);
}

Result<void> Chat::append_turns(const Tokenizer& tokenizer, std::span<const Message> messages,
                                std::vector<uint32_t>& ids) const {
  for (const auto& [role, content] : messages) {
    const std::string_view name = role == "assistant" ? "model" : std::string_view(role);
    if (name != "system" && name != "user" && name != "model") {
      return fail(ErrorCode::invalid_argument,
                  "message: role '{}'; expected system, user, model or assistant", role);
    }
    ids.push_back(open_);
    // In one piece, as tokens may join the role's end to the content.
    TRY(append_text(tokenizer, fmt::format("{}{}{}", name, rule_->role_end, trim(content)), ids));
    ids.push_back(close_);
    TRY(append_text(tokenizer, rule_->turn_end, ids));
  }
  ids.push_back(open_);
  return append_text(tokenizer, fmt::format("{}{}", rule_->answer_role, rule_->role_end), ids);
}

Result<std::vector<uint32_t>> Chat::begin(const Tokenizer& tokenizer,
                                          std::span<const Message> messages) const {
  std::vector<uint32_t> ids = {tokenizer.bos()};
  TRY(append_turns(tokenizer, messages, ids));
  return ids;
}

Result<std::vector<uint32_t>> Chat::next(const Tokenizer& tokenizer,
                                         std::span<const Message> messages, bool closed) const {
  std::vector<uint32_t> ids;
  if (!closed) ids.push_back(close_);
  TRY(append_text(tokenizer, rule_->turn_end, ids));
  TRY(append_turns(tokenizer, messages, ids));
  return ids;
}

}  // namespace tandem::text
