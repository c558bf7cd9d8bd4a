#include "text/pieces.h"

#include <algorithm>
#include <span>
#include <string>
#include <tuple>

#include "text/vocabulary.h"

namespace tandem::text {
namespace {

// Runs of spaces are spelled with spaces in GGUF, with U+2581 in tokenizer.json.
std::string spell(std::string_view token) {
  if (token.find_first_not_of(' ') != token.npos) return std::string(token);
  std::string result;
  for (size_t i = 0; i < token.size(); ++i) result += separator;
  return result;
}

Result<Vocabulary> by_spelling(const std::vector<std::string_view>& spellings,
                               const std::string& where) {
  Vocabulary vocabulary;
  vocabulary.reserve(spellings.size());
  for (uint32_t id = 0; id < spellings.size(); ++id) {
    if (spellings[id].empty()) {
      return fail(ErrorCode::malformed_text, "{}: token {} is empty", where, id);
    }
    const auto [other, is_new] = vocabulary.emplace(spellings[id], id);
    if (!is_new) {
      return fail(ErrorCode::malformed_text, "{}: tokens {} and {} are both '{}'", where,
                  other->second, id, spellings[id]);
    }
  }
  return vocabulary;
}

// Whether a character begins at a byte of UTF-8.
bool begins(char byte) { return (static_cast<uint8_t>(byte) & 0xC0) != 0x80; }

size_t characters(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), begins));
}

struct ScoredMerge {
  Merge merge;
  double score;
  size_t left, right;  // the parts' characters
};

std::vector<Merge> merges_by_score(const PieceList& list, const Vocabulary& vocabulary,
                                   const std::vector<std::string_view>& spellings) {
  std::vector<ScoredMerge> found;
  for (uint32_t id = 0; id < spellings.size(); ++id) {
    if (list.kinds[id] == PieceKind::control) continue;
    const double score = list.kinds[id] == PieceKind::user_defined ? 0 : list.scores[id];
    const std::string_view token = spellings[id];
    for (size_t at = 1; at < token.size(); ++at) {
      if (!begins(token[at])) continue;
      const auto left = vocabulary.find(token.substr(0, at));
      if (left == vocabulary.end()) continue;
      const auto right = vocabulary.find(token.substr(at));
      if (right == vocabulary.end()) continue;
      found.push_back({{left->second, right->second, id},
                       score,
                       characters(left->first),
                       characters(right->first)});
    }
  }
  std::stable_sort(found.begin(), found.end(), [](const ScoredMerge& a, const ScoredMerge& b) {
    return std::tie(a.score, a.left, a.right) > std::tie(b.score, b.left, b.right);
  });
  std::vector<Merge> merges;
  for (const ScoredMerge& scored : found) merges.push_back(scored.merge);
  return merges;
}

Result<void> add_merges(Table& table, const std::vector<std::string_view>& merges,
                        const Vocabulary& vocabulary, const std::string& where) {
  for (const std::string_view merge : merges) {
    const auto pair = split_merge(merge);
    if (!pair) {
      return fail(ErrorCode::malformed_text, "{}[{}]: expected two tokens, found '{}'", where,
                  table.merges.size(), merge);
    }
    TRY(add_merge(table, vocabulary, pair->first, pair->second, where));
  }
  return {};
}

}  // namespace

Result<std::vector<std::byte>> compile_pieces(const PieceList& list, std::string_view where) {
  const std::string file(where);
  const size_t scores = list.merges ? list.spellings.size() : list.scores.size();
  if (list.kinds.size() != list.spellings.size() || scores != list.spellings.size()) {
    return fail(ErrorCode::malformed_text, "{}: {} tokens, but {} types and {} scores", file,
                list.spellings.size(), list.kinds.size(), list.scores.size());
  }
  std::vector<std::string> spelled;
  for (const std::string_view token : list.spellings) spelled.push_back(spell(token));
  const std::vector<std::string_view> spellings(spelled.begin(), spelled.end());
  TRY_ASSIGN(const Vocabulary vocabulary, by_spelling(spellings, file));

  Table table;
  table.bos = list.bos;
  for (uint32_t id = 0; id < spellings.size(); ++id) {
    if (list.kinds[id] == PieceKind::normal) continue;
    table.added.push_back({id, list.kinds[id] == PieceKind::control, spelled[id]});
  }
  TRY(add_pieces(table, spellings, vocabulary, file));
  if (list.merges) {
    TRY(add_merges(table, *list.merges, vocabulary, file + ": merges"));
  } else {
    table.merges = merges_by_score(list, vocabulary, spellings);
  }
  return write_checked(table, file);
}

Result<std::vector<std::byte>> with_source(std::string_view bytes, const Digest& source) {
  TRY_ASSIGN(Table table, read_table(std::as_bytes(std::span(bytes))));
  table.source = source;
  return write_table(table);
}

}  // namespace tandem::text
