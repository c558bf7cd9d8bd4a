#include "exporter/synthetic_tokenizer.h"

#include <fmt/format.h>

#include <map>

#include "base/json.h"
#include "text/table.h"

namespace tandem::exporter {
namespace {

std::map<uint32_t, std::string> special_tokens(const spec::Config& config) {
  std::map<uint32_t, std::string> tokens = {
      {config.pad, "<pad>"}, {config.eos.front(), "<eos>"}, {config.bos, "<bos>"}};
  if (config.eos.size() > 1) {
    tokens.emplace(config.eos.back() - 1, "<|turn>");
    tokens.emplace(config.eos.back(), "<turn|>");
  }
  return tokens;
}

}  // namespace

std::string synthetic_tokenizer(const spec::Config& config) {
  const std::map<uint32_t, std::string> special = special_tokens(config);
  Json vocabulary, added = Json::array();
  uint32_t plain = 0;  // tokens so far that are not special
  for (uint32_t id = 0; id < config.vocabulary; ++id) {
    if (const auto token = special.find(id); token != special.end()) {
      vocabulary[token->second] = id;
      added.push_back({{"id", id},
                       {"content", token->second},
                       {"special", true},
                       {"single_word", false},
                       {"lstrip", false},
                       {"rstrip", false},
                       {"normalized", false}});
      continue;
    }
    std::string token(text::separator);
    if (plain < 256) token = fmt::format("<0x{:02X}>", plain);
    if (plain > 256) token += std::to_string(id);
    vocabulary[token] = id;
    ++plain;
  }
  const auto replace = [](std::string_view from, std::string_view to) {
    return Json{{"type", "Replace"}, {"pattern", {{"String", from}}}, {"content", to}};
  };
  const Json decoders = {
      replace(text::separator, " "), {{"type", "ByteFallback"}}, {{"type", "Fuse"}}};
  return Json{{"version", "1.0"},
              {"added_tokens", added},
              {"normalizer", replace(" ", text::separator)},
              {"decoder", {{"type", "Sequence"}, {"decoders", decoders}}},
              {"model",
               {{"type", "BPE"},
                {"byte_fallback", true},
                {"vocab", vocabulary},
                {"merges", Json::array()}}}}
      .dump();
}

}  // namespace tandem::exporter
