// From a Hugging Face tokenizer.json to the table: reads every field that could change a result,
// and refuses by name what Tandem does not do.
#include "base/json.h"
#include "text/tokenizer.h"
#include "text/vocabulary.h"

namespace tandem::text {
namespace {

tl::unexpected<Error> not_built(const std::string& where, std::string_view expected,
                                const std::string& found) {
  return fail(ErrorCode::unsupported, "{}: Tandem has {} here; found {}", where, expected, found);
}

// The field must have this very value.
Result<void> expect(JsonObject& object, std::string_view key, const Json& expected) {
  TRY_ASSIGN(const JsonValue value, object.get<JsonValue>(key));
  if (value.json() == expected) return {};
  return not_built(value.where(), expected.dump(), value.found());
}

// The field must be missing or null, or `neutral`.
Result<void> expect_off(JsonObject& object, std::string_view key, const Json& neutral = nullptr) {
  TRY_ASSIGN(const auto value, object.nullable<JsonValue>(key));
  if (!value || value->json() == neutral) return {};
  return not_built(value->where(), "null", value->found());
}

// The "type" of a component, or "null" for one that is missing.
std::string type_of(const Json& component) {
  if (!component.is_object() || !component.contains("type")) return component.dump();
  return component["type"].dump();
}

Json replace(std::string_view pattern, std::string_view content) {
  return {{"type", "Replace"}, {"pattern", {{"String", pattern}}}, {"content", content}};
}

// One component, or a Sequence with nothing else in it.
const Json& only(const Json& component, const char* list) {
  const bool single = component.is_object() && component.value("type", Json()) == "Sequence" &&
                      component.contains(list) && component[list].is_array() &&
                      component[list].size() == 1;
  return single ? component[list][0] : component;
}

Result<void> read_normalizer(JsonObject& root) {
  TRY_ASSIGN(const JsonValue value, root.get<JsonValue>("normalizer"));
  const Json& normalizer = only(value.json(), "normalizers");
  if (normalizer == replace(" ", separator)) return {};
  return not_built(value.where(), "the Replace of ' ' by U+2581 alone", type_of(normalizer));
}

// After the normalizer no space is left, so a Split at spaces does nothing; all else would.
Result<void> read_pre_tokenizer(JsonObject& root) {
  TRY_ASSIGN(const auto value, root.nullable<JsonValue>("pre_tokenizer"));
  if (!value) return {};
  const Json& split = only(value->json(), "pretokenizers");
  const bool idle = split.is_object() && split.value("type", Json()) == "Split" &&
                    split.value("pattern", Json()) == Json{{"String", " "}} &&
                    split.value("invert", Json()) == false;
  if (idle) return {};
  return not_built(value->where(), "null or a Split at ' '", type_of(split));
}

Result<void> read_decoder(JsonObject& root) {
  TRY_ASSIGN(const JsonValue value, root.get<JsonValue>("decoder"));
  const Json expected = {
      {"type", "Sequence"},
      {"decoders", {replace(separator, " "), {{"type", "ByteFallback"}}, {{"type", "Fuse"}}}}};
  if (value.json() == expected) return {};
  return not_built(value.where(), "the Sequence of Replace (U+2581 by ' '), ByteFallback, Fuse",
                   value.json().dump());
}

// The token that the template puts in front of a text; none without a template.
Result<std::optional<std::string>> read_post_processor(JsonObject& root) {
  TRY_ASSIGN(const auto value, root.nullable<JsonValue>("post_processor"));
  if (!value) return std::nullopt;
  const Json& processor = value->json();
  const Json text = {{"Sequence", {{"id", "A"}, {"type_id", 0}}}};
  if (type_of(processor) == "\"TemplateProcessing\"" && processor.contains("single")) {
    const Json& single = processor["single"];
    if (single == Json::array({text})) return std::nullopt;
    if (single.is_array() && single.size() == 2 && single[1] == text && single[0].is_object() &&
        single[0].contains("SpecialToken")) {
      TRY_ASSIGN(auto token, JsonValue(single[0]["SpecialToken"], value->where()).as<JsonObject>());
      return token.get<std::string>("id");
    }
  }
  return not_built(value->where(), "a TemplateProcessing with at most one token before the text",
                   type_of(processor));
}

Result<std::vector<AddedToken>> read_added_tokens(JsonObject& root) {
  TRY_ASSIGN(auto objects, root.get<std::vector<JsonObject>>("added_tokens"));
  std::vector<AddedToken> result;
  for (JsonObject& object : objects) {
    AddedToken token;
    TRY_ASSIGN(token.id, object.get<uint32_t>("id"));
    TRY_ASSIGN(token.special, object.get<bool>("special"));
    TRY_ASSIGN(token.content, object.get<std::string>("content"));
    for (const char* option : {"single_word", "lstrip", "rstrip", "normalized"}) {
      TRY(expect(object, option, false));
    }
    TRY(object.finish());
    result.push_back(std::move(token));
  }
  return result;
}

Result<void> read_model_options(JsonObject& model) {
  TRY(expect(model, "type", "BPE"));
  TRY(expect(model, "byte_fallback", true));
  TRY(expect_off(model, "dropout"));
  TRY(expect_off(model, "continuing_subword_prefix", ""));
  TRY(expect_off(model, "end_of_word_suffix", ""));
  TRY(expect_off(model, "ignore_merges", false));
  model.skip("unk_token");  // with a token for every byte, nothing is unknown
  model.skip("fuse_unk");
  return {};
}

Result<Vocabulary> read_vocabulary(JsonObject& model) {
  TRY_ASSIGN(const JsonValue value, model.get<JsonValue>("vocab"));
  if (!value.json().is_object()) {
    return fail(ErrorCode::wrong_type, "{}: expected an object", value.where());
  }
  Vocabulary result;
  result.reserve(value.json().size());
  for (const auto& [piece, id] : value.json().items()) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() > UINT32_MAX) {
      return fail(ErrorCode::wrong_type, "{}: the id of '{}' is {}", value.where(), piece,
                  id.dump());
    }
    result.emplace(piece, id.get<uint32_t>());
  }
  return result;
}

// The spellings of all tokens by id; refuses ids that are missing or double.
Result<std::vector<std::string_view>> by_id(const Vocabulary& vocabulary,
                                            const std::vector<AddedToken>& added,
                                            const std::string& where) {
  std::vector<std::pair<uint32_t, std::string_view>> tokens;
  for (const auto& [piece, id] : vocabulary) tokens.emplace_back(id, piece);
  for (const AddedToken& token : added) {
    const auto known = vocabulary.find(token.content);
    if (known == vocabulary.end()) {
      tokens.emplace_back(token.id, token.content);
    } else if (known->second != token.id) {
      return fail(ErrorCode::malformed_text, "{}: '{}' is token {} in vocab, {} in added_tokens",
                  where, token.content, known->second, token.id);
    }
  }
  std::vector<std::string_view> result(tokens.size());
  for (const auto& [id, piece] : tokens) {
    if (piece.empty()) {
      return fail(ErrorCode::malformed_text, "{}: token {} is empty", where, id);
    }
    if (id >= result.size() || !result[id].empty()) {
      return fail(ErrorCode::malformed_text,
                  "{}: token '{}' has id {}; the {} tokens must have the ids from 0, once each",
                  where, piece, id, result.size());
    }
    result[id] = piece;
  }
  return result;
}

// A merge is written ["a", "b"] or, by older versions, "a b".
std::optional<std::pair<std::string_view, std::string_view>> pair_of(const Json& merge) {
  if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
    return std::pair<std::string_view, std::string_view>(merge[0].get_ref<const std::string&>(),
                                                         merge[1].get_ref<const std::string&>());
  }
  if (!merge.is_string()) return std::nullopt;
  return split_merge(merge.get_ref<const std::string&>());
}

Result<void> add_merges(Table& table, JsonObject& model, const Vocabulary& vocabulary) {
  TRY_ASSIGN(const JsonValue value, model.get<JsonValue>("merges"));
  if (!value.json().is_array()) {
    return fail(ErrorCode::wrong_type, "{}: expected an array", value.where());
  }
  table.merges.reserve(value.json().size());
  const std::string where = value.where();
  for (const Json& merge : value.json()) {
    const auto pair = pair_of(merge);
    if (!pair) {
      return fail(ErrorCode::wrong_type, "{}[{}]: expected two tokens, found {}", where,
                  table.merges.size(), merge.dump());
    }
    TRY(add_merge(table, vocabulary, pair->first, pair->second, where));
  }
  return {};
}

Result<void> find_bos(Table& table, const std::optional<std::string>& name,
                      const std::string& where) {
  const std::string content = name.value_or("<bos>");
  for (const AddedToken& token : table.added) {
    if (token.content != content) continue;
    table.bos = token.id;
    return {};
  }
  return fail(ErrorCode::unsupported, "{}: '{}', which begins a text, is not an added token", where,
              content);
}

}  // namespace

Result<std::vector<std::byte>> compile_tokenizer(std::string_view json, std::string_view where) {
  const std::string file(where);
  Json document;
  TRY_ASSIGN(JsonObject root, open_json_object(json, file, document));
  TRY(expect(root, "version", "1.0"));
  TRY(expect_off(root, "truncation"));
  TRY(expect_off(root, "padding"));
  TRY(read_normalizer(root));
  TRY(read_pre_tokenizer(root));
  TRY(read_decoder(root));
  TRY_ASSIGN(const std::optional<std::string> bos, read_post_processor(root));
  TRY_ASSIGN(JsonObject model, root.get<JsonObject>("model"));
  TRY(read_model_options(model));

  Table table;
  table.source = sha256(json);
  TRY_ASSIGN(table.added, read_added_tokens(root));
  TRY(find_bos(table, bos, file));
  TRY_ASSIGN(const Vocabulary vocabulary, read_vocabulary(model));
  TRY_ASSIGN(const auto tokens, by_id(vocabulary, table.added, file));
  TRY(add_pieces(table, tokens, vocabulary, file));
  TRY(add_merges(table, model, vocabulary));
  TRY(model.finish());
  TRY(root.finish());

  return write_checked(table, file);
}

}  // namespace tandem::text
