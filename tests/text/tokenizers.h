// The tokenizers that the tests use: the atlas', and tiny ones made here.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/golden.h"
#include "text/tokenizer.h"

namespace tandem::test {

inline const std::string golden_folder = std::string(TANDEM_SOURCE_DIR) + "/tests/golden/";

inline text::Tokenizer compile_and_load(std::string_view json) {
  const auto table = text::compile_tokenizer(json, "tokenizer.json");
  if (!table) {
    ADD_FAILURE() << table.error().message;
    std::abort();
  }
  return text::Tokenizer::load(*table).value();
}

inline const text::Tokenizer& atlas() {
  static const text::Tokenizer tokenizer =
      compile_and_load(read_text(golden_folder + "atlas/tokenizer.json"));
  return tokenizer;
}

// A tokenizer.json in Gemma's form: four special tokens, one other added token, the bytes, U+2581,
// the letters a to e, and what the merges make of these.
inline nlohmann::json tiny_json(std::initializer_list<std::pair<const char*, const char*>> merges =
                                    {{"a", "b"}, {"▁", "ab"}, {"ab", "ab"}, {"c", "▁"}}) {
  using nlohmann::json;
  json vocab = json::object();
  const auto add = [&](const std::string& piece) {
    if (!vocab.contains(piece)) vocab[piece] = vocab.size();
  };
  json added = json::array();
  for (const char* token : {"<pad>", "<bos>", "<|turn>", "<turn|>", "<tab>"}) {
    const bool special = std::string_view(token) != "<tab>";
    added.push_back({{"id", vocab.size()},
                     {"content", token},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", special}});
    add(token);
  }
  for (int byte = 0; byte < 256; ++byte) add(fmt::format("<0x{:02X}>", byte));
  for (const char* piece : {"▁", "a", "b", "c", "d", "e"}) add(piece);
  json pairs = json::array();
  for (const auto& [left, right] : merges) {
    add(std::string(left) + right);
    pairs.push_back({left, right});
  }
  const auto replace = [](const char* pattern, const char* content) {
    return json{{"type", "Replace"}, {"pattern", {{"String", pattern}}}, {"content", content}};
  };
  const json text = {{"Sequence", {{"id", "A"}, {"type_id", 0}}}};
  const json bos = {{"SpecialToken", {{"id", "<bos>"}, {"type_id", 0}}}};
  return {
      {"version", "1.0"},
      {"truncation", nullptr},
      {"padding", nullptr},
      {"added_tokens", added},
      {"normalizer", replace(" ", "▁")},
      {"pre_tokenizer", nullptr},
      {"post_processor",
       {{"type", "TemplateProcessing"},
        {"single", json::array({bos, text})},
        {"pair", json::array({bos, text})},
        {"special_tokens", {{"<bos>", {{"id", "<bos>"}, {"ids", {1}}, {"tokens", {"<bos>"}}}}}}}},
      {"decoder",
       {{"type", "Sequence"},
        {"decoders",
         json::array({replace("▁", " "), {{"type", "ByteFallback"}}, {{"type", "Fuse"}}})}}},
      {"model",
       {{"type", "BPE"},
        {"dropout", nullptr},
        {"unk_token", "<pad>"},
        {"continuing_subword_prefix", nullptr},
        {"end_of_word_suffix", nullptr},
        {"fuse_unk", true},
        {"byte_fallback", true},
        {"ignore_merges", false},
        {"vocab", vocab},
        {"merges", pairs}}}};
}

// The pieces of a text's tokens, with bars between them.
inline std::string pieces(const text::Tokenizer& tokenizer, std::string_view text,
                          text::EncodeOptions options = {}) {
  const auto ids = tokenizer.encode(text, options);
  if (!ids) return ids.error().message;
  std::string result;
  for (uint32_t id : *ids) result += (result.empty() ? "" : "|") + std::string(tokenizer.piece(id));
  return result;
}

}  // namespace tandem::test
