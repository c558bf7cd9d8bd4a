// Opens the tokenizer and chat template of an artifact, and holds them against its manifest.
#include "engine/prompts.h"

#include <algorithm>

#include "base/error.h"

namespace tandem::engine {
namespace {

Result<text::Chat> open_chat(const artifact::Artifact& artifact, const text::Tokenizer& tokenizer) {
  const auto& chat_template = artifact.manifest().chat_template;
  if (!chat_template) {
    return fail(ErrorCode::unsupported,
                "{}: the artifact has no chat template; give a raw prompt instead",
                artifact.folder().string());
  }
  return text::Chat::open(chat_template->sha256, tokenizer);
}

}  // namespace

Result<Prompts> Prompts::open(const artifact::Artifact& artifact) {
  const std::string file = (artifact.folder() / artifact::tokenizer_table_file).string();
  const auto refuse = [&](std::string_view text) {
    return fail(ErrorCode::malformed_artifact, "{}: {}", file, text);
  };
  Result<text::Tokenizer> loaded =
      text::Tokenizer::load(std::as_bytes(std::span(artifact.tokenizer())));
  if (!loaded) return refuse(loaded.error().message);
  text::Tokenizer& tokenizer = *loaded;
  if (tokenizer.size() > artifact.config().vocabulary) {
    return refuse(fmt::format("tokens: expected at most {}, the config's vocab_size, found {}",
                              artifact.config().vocabulary, tokenizer.size()));
  }
  if (tokenizer.bos() != artifact.config().bos) {
    return refuse(fmt::format("bos: expected {}, the config's bos_token_id, found {}",
                              artifact.config().bos, tokenizer.bos()));
  }
  if (!(tokenizer.source() == artifact.manifest().tokenizer_source)) {
    return refuse(
        fmt::format("source: expected {}, the manifest's tokenizer_source_sha256, found {}",
                    artifact.manifest().tokenizer_source.hex(), tokenizer.source().hex()));
  }
  Result<text::Chat> chat = open_chat(artifact, tokenizer);
  return Prompts(std::move(tokenizer), std::move(chat));
}

Result<std::vector<uint32_t>> Prompts::encode(std::string_view text) const {
  return tokenizer_.encode_prompt(text);
}

Result<std::vector<uint32_t>> Prompts::encode_chat(std::span<const Message> messages) const {
  if (!chat_) return tl::unexpected<Error>(chat_.error());
  return chat_->begin(tokenizer_, messages);
}

Result<std::vector<uint32_t>> Prompts::next(std::span<const uint32_t> ids,
                                            std::span<const uint32_t> stop_ids,
                                            std::span<const Message> messages) const {
  if (ids.empty()) return encode_chat(messages);
  if (!chat_) return tl::unexpected<Error>(chat_.error());
  std::vector<uint32_t> prompt(ids.begin(), ids.end());
  const bool closed = prompt.back() == chat_->close_id();
  // Another stop id is no part of the conversation: the turn's own end takes its place.
  if (!closed && std::find(stop_ids.begin(), stop_ids.end(), prompt.back()) != stop_ids.end()) {
    prompt.pop_back();
  }
  TRY_ASSIGN(const std::vector<uint32_t> turns, chat_->next(tokenizer_, messages, closed));
  prompt.insert(prompt.end(), turns.begin(), turns.end());
  return prompt;
}

Result<text::GenerationConfig> generation_config(const artifact::Artifact& artifact) {
  if (!artifact.generation_config()) {
    TRY(text::check_stop_ids(artifact.config().eos, artifact::manifest_file));
    return text::GenerationConfig{artifact.config().eos, {.temperature = 0}};
  }
  constexpr std::string_view file = "generation_config.json";
  TRY_ASSIGN(text::GenerationConfig config,
             text::read_generation_config(*artifact.generation_config(), file,
                                          artifact.config().vocabulary));
  return config;
}

Result<Texts> open_texts(const artifact::Artifact& artifact) {
  TRY_ASSIGN(Prompts prompts, Prompts::open(artifact));
  TRY_ASSIGN(text::GenerationConfig defaults, generation_config(artifact));
  return Texts{std::move(prompts), std::move(defaults)};
}

}  // namespace tandem::engine
