// A trie of the added tokens' spellings.
#include "text/added_tokens.h"

namespace tandem::text {
namespace {

size_t total_bytes(const std::vector<AddedToken>& tokens) {
  size_t bytes = 0;
  for (const AddedToken& token : tokens) bytes += token.content.size();
  return bytes;
}

}  // namespace

AddedTokens::AddedTokens(const std::vector<AddedToken>& tokens)
    : children_(total_bytes(tokens)), token_of_{PairMap::missing} {
  for (uint32_t index = 0; index < tokens.size(); ++index) {
    uint32_t node = 0;
    for (const char character : tokens[index].content) {
      const auto byte = static_cast<uint8_t>(character);
      const auto fresh = static_cast<uint32_t>(token_of_.size());
      if (children_.insert(node, byte, fresh)) token_of_.push_back(PairMap::missing);
      node = children_.find(node, byte);
    }
    token_of_[node] = index;
    first_bytes_.set(static_cast<uint8_t>(tokens[index].content[0]));
  }
}

std::optional<AddedTokens::Match> AddedTokens::find(std::string_view text, size_t begin) const {
  for (size_t at = begin; at < text.size(); ++at) {
    if (!first_bytes_[static_cast<uint8_t>(text[at])]) continue;
    if (const auto match = match_at(text, at)) return match;
  }
  return std::nullopt;
}

std::optional<AddedTokens::Match> AddedTokens::match_at(std::string_view text, size_t begin) const {
  std::optional<Match> longest;
  uint32_t node = 0;
  for (size_t at = begin; at < text.size(); ++at) {
    node = children_.find(node, static_cast<uint8_t>(text[at]));
    if (node == PairMap::missing) break;
    if (token_of_[node] != PairMap::missing) {
      longest = Match{begin, at + 1 - begin, token_of_[node]};
    }
  }
  return longest;
}

std::optional<uint32_t> AddedTokens::exact(std::string_view content) const {
  if (content.empty()) return std::nullopt;
  const auto match = match_at(content, 0);
  if (!match || match->bytes != content.size()) return std::nullopt;
  return match->index;
}

}  // namespace tandem::text
