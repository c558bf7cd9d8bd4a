#include "exporter/gguf_texts.h"

#include <algorithm>
#include <array>
#include <span>

#include "base/error.h"
#include "text/pieces.h"

namespace tandem::exporter {
namespace {

using text::PieceKind;

constexpr std::string_view sentence_piece = "llama";
constexpr std::string_view gemma4_bpe = "gemma4";

// Control tokens that end an answer, whether or not a key names them, as in llama.cpp.
constexpr std::string_view end_tokens[] = {"<eos>", "<end_of_turn>", "<turn|>"};

// Control tokens of Gemma 4 that llama.cpp's converter makes user-defined, so that its chats show
// them. A text must not give them all the same.
constexpr std::string_view shown_control_tokens[] = {
    "<|channel>",       "<channel|>",       "<|tool_call>", "<tool_call|>",
    "<|tool_response>", "<tool_response|>", "<|\"|>"};

template <size_t size>
bool contains(const std::string_view (&list)[size], std::string_view text) {
  return std::find(std::begin(list), std::end(list), text) != std::end(list);
}

std::string tokenizer_key(std::string_view name) { return fmt::format("tokenizer.ggml.{}", name); }

// Views of the strings of an array.
Result<std::vector<std::string_view>> read_strings(JsonObject& metadata, const std::string& key) {
  TRY_ASSIGN(const JsonValue value, metadata.get<JsonValue>(key));
  std::vector<std::string_view> strings;
  if (value.json().is_array()) {
    for (const Json& element : value.json()) {
      if (element.is_string()) strings.push_back(element.get_ref<const std::string&>());
    }
    if (strings.size() == value.json().size()) return strings;
  }
  return fail(ErrorCode::wrong_type, "{}: expected an array of strings", value.where());
}

Result<std::vector<PieceKind>> read_kinds(JsonObject& metadata,
                                          const std::vector<std::string_view>& spellings) {
  enum { normal = 1, unknown, control, user_defined, unused, byte };  // the format's
  TRY_ASSIGN(const auto types, metadata.get<std::vector<uint32_t>>(tokenizer_key("token_type")));
  std::vector<PieceKind> kinds;
  for (const uint32_t type : types) {
    if (type < normal || type > byte) {
      return fail(ErrorCode::bad_value, "{}[{}]: expected {} to {}, found {}",
                  metadata.where(tokenizer_key("token_type")), kinds.size(), int{normal}, int{byte},
                  type);
    }
    const bool shown = type == user_defined && kinds.size() < spellings.size() &&
                       contains(shown_control_tokens, spellings[kinds.size()]);
    const bool is_control = type == control || type == unknown || shown;
    kinds.push_back(is_control             ? PieceKind::control
                    : type == user_defined ? PieceKind::user_defined
                                           : PieceKind::normal);
  }
  return kinds;
}

// Options that would change how a text is split. A missing key means `otherwise`.
Result<void> expect_flag(JsonObject& metadata, std::string_view name, bool expected,
                         bool otherwise) {
  TRY_ASSIGN(const auto flag, metadata.find<bool>(tokenizer_key(name)));
  if (flag.value_or(otherwise) == expected) return {};
  return fail(ErrorCode::unsupported, "{}: expected {}, found {}",
              metadata.where(tokenizer_key(name)), expected, flag ? fmt::to_string(*flag) : "none");
}

Result<text::PieceList> read_pieces(JsonObject& metadata) {
  TRY_ASSIGN(const std::string model, metadata.get<std::string>(tokenizer_key("model")));
  const bool scored = model == sentence_piece;
  if (!scored && model != gemma4_bpe) {
    return fail(ErrorCode::unsupported, "{}: expected {} or {}, found {}",
                metadata.where(tokenizer_key("model")), sentence_piece, gemma4_bpe, model);
  }
  TRY(expect_flag(metadata, "add_space_prefix", false, scored));
  TRY(expect_flag(metadata, "add_bos_token", true, true));
  TRY(expect_flag(metadata, "add_eos_token", false, false));
  TRY(expect_flag(metadata, "remove_extra_whitespaces", false, false));
  text::PieceList list;
  TRY_ASSIGN(list.spellings, read_strings(metadata, tokenizer_key("tokens")));
  TRY_ASSIGN(list.kinds, read_kinds(metadata, list.spellings));
  if (scored) {
    TRY_ASSIGN(list.scores, metadata.get<std::vector<double>>(tokenizer_key("scores")));
  } else {
    TRY_ASSIGN(list.merges, read_strings(metadata, tokenizer_key("merges")));
  }
  TRY_ASSIGN(list.bos, metadata.get<uint32_t>(tokenizer_key("bos_token_id")));
  return list;
}

Result<GgufTokens> read_tokens(JsonObject& metadata, const text::PieceList& pieces) {
  GgufTokens tokens;
  tokens.bos = pieces.bos;
  TRY_ASSIGN(tokens.pad, metadata.get<uint32_t>(tokenizer_key("padding_token_id")));
  TRY_ASSIGN(const uint32_t eos, metadata.get<uint32_t>(tokenizer_key("eos_token_id")));
  tokens.eos.push_back(eos);
  for (const std::string_view name : {"eot_token_id", "eom_token_id"}) {
    TRY_ASSIGN(const auto id, metadata.find<uint32_t>(tokenizer_key(name)));
    if (id) tokens.eos.push_back(*id);
  }
  for (uint32_t id = 0; id < pieces.spellings.size(); ++id) {
    if (pieces.kinds[id] == PieceKind::control && contains(end_tokens, pieces.spellings[id]))
      tokens.eos.push_back(id);
  }
  std::sort(tokens.eos.begin(), tokens.eos.end());
  tokens.eos.erase(std::unique(tokens.eos.begin(), tokens.eos.end()), tokens.eos.end());
  return tokens;
}

// A generation_config.json, where the file says how answers are sampled.
Result<std::optional<std::string>> read_sampling(JsonObject& metadata, const GgufTokens& tokens) {
  constexpr std::pair<std::string_view, std::string_view> keys[] = {
      {"general.sampling.temp", "temperature"},
      {"general.sampling.top_k", "top_k"},
      {"general.sampling.top_p", "top_p"},
      {"general.sampling.min_p", "min_p"},
      {"general.sampling.penalty_repeat", "repetition_penalty"}};
  Json sampling = Json::object();
  for (const auto& [key, name] : keys) {
    TRY_ASSIGN(const auto value, metadata.find<JsonValue>(key));
    if (value) sampling[std::string(name)] = value->json();
  }
  if (sampling.empty()) return std::nullopt;
  sampling["eos_token_id"] = tokens.eos;
  sampling["do_sample"] = true;
  if (!sampling.contains("top_k")) sampling["top_k"] = 0;  // off, which is not its default
  return canonical_json(sampling);
}

// A file that llama.cpp's tool split.
Result<void> refuse_part(JsonObject& metadata) {
  constexpr std::string_view key = "split.count";
  TRY_ASSIGN(const auto count, metadata.find<uint32_t>(key));
  if (count.value_or(1) <= 1) return {};
  return fail(ErrorCode::unsupported,
              "{}: expected a whole model, found one of {} files; join them with llama.cpp's "
              "gguf-split --merge",
              metadata.where(key), *count);
}

}  // namespace

Result<Texts> read_gguf_texts(JsonObject& metadata, const Checkpoint& checkpoint) {
  TRY(refuse_part(metadata));
  TRY_ASSIGN(const text::PieceList pieces, read_pieces(metadata));
  TRY_ASSIGN(const std::vector<std::byte> table, text::compile_pieces(pieces, metadata.where()));
  TRY_ASSIGN(const GgufTokens tokens, read_tokens(metadata, pieces));
  Texts texts;
  texts.tokenizer_form = TokenizerForm::table;
  texts.tokenizer.assign(reinterpret_cast<const char*>(table.data()), table.size());
  TRY_ASSIGN(texts.config, gguf_config(metadata, tokens, checkpoint));
  TRY_ASSIGN(texts.chat_template, metadata.find<std::string>("tokenizer.chat_template"));
  TRY_ASSIGN(texts.generation_config, read_sampling(metadata, tokens));
  return texts;
}

}  // namespace tandem::exporter
