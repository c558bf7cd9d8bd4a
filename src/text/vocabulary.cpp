#include "text/vocabulary.h"

#include "text/tokenizer.h"

namespace tandem::text {

std::optional<std::pair<std::string_view, std::string_view>> split_merge(std::string_view merge) {
  const size_t space = merge.find(' ');
  if (space == std::string_view::npos || merge.find(' ', space + 1) != std::string_view::npos) {
    return std::nullopt;
  }
  return std::pair(merge.substr(0, space), merge.substr(space + 1));
}

Result<void> add_pieces(Table& table, const std::vector<std::string_view>& spellings,
                        const Vocabulary& vocabulary, const std::string& where) {
  std::unordered_map<uint32_t, uint8_t> byte_of;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    const std::string token = fmt::format("<0x{:02X}>", byte);
    const auto found = vocabulary.find(token);
    if (found == vocabulary.end()) {
      return fail(ErrorCode::unsupported, "{}: no token {}; Tandem needs one for every byte", where,
                  token);
    }
    table.byte_ids[byte] = found->second;
    byte_of[found->second] = static_cast<uint8_t>(byte);
  }
  for (const std::string_view spelling : spellings) {
    const auto byte = byte_of.find(table.size());
    const std::string piece = byte == byte_of.end()
                                  ? with_spaces(spelling)
                                  : std::string(1, static_cast<char>(byte->second));
    if (piece.size() > UINT16_MAX) {
      return fail(ErrorCode::unsupported, "{}: token {} has {} bytes, at most {} are possible",
                  where, table.size(), piece.size(), UINT16_MAX);
    }
    table.append_piece(piece);
  }
  return {};
}

Result<void> add_merge(Table& table, const Vocabulary& vocabulary, std::string_view left,
                       std::string_view right, const std::string& where) {
  const auto first = vocabulary.find(left);
  const auto second = vocabulary.find(right);
  const auto merged = vocabulary.find(std::string(left).append(right));
  for (const auto& found : {first, second, merged}) {
    if (found != vocabulary.end()) continue;
    return fail(ErrorCode::malformed_text, "{}[{}]: '{}' + '{}': not all three are in vocab", where,
                table.merges.size(), left, right);
  }
  table.merges.push_back({first->second, second->second, merged->second});
  return {};
}

Result<std::vector<std::byte>> write_checked(const Table& table, const std::string& where) {
  std::vector<std::byte> bytes = write_table(table);
  if (const auto loaded = Tokenizer::load(bytes); !loaded) {
    return fail(ErrorCode::malformed_text, "{}: {}", where, loaded.error().message);
  }
  return bytes;
}

}  // namespace tandem::text
