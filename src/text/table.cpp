// The bytes of a compiled tokenizer, and the checks that make a table safe to use.
#include "text/table.h"

#include <unordered_set>

#include "text/utf8.h"

namespace tandem::text {
namespace {

constexpr std::string_view magic = "tandemtk";
constexpr uint32_t version = 1;

class Writer {
 public:
  template <class T>
  void number(T value) {
    for (size_t i = 0; i < sizeof(T); ++i) {
      bytes_.push_back(static_cast<std::byte>(static_cast<uint64_t>(value) >> (8 * i)));
    }
  }
  void raw(std::span<const std::byte> bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  void text(std::string_view text) { raw(std::as_bytes(std::span<const char>(text))); }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

// A read past the end gives zeros and is remembered.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::string_view text(size_t count) {
    if (!holds(count, 1)) {
      overrun_ = true;
      return {};
    }
    const std::string_view result(reinterpret_cast<const char*>(bytes_.data()), count);
    bytes_ = bytes_.subspan(count);
    return result;
  }
  template <class T>
  T number() {
    uint64_t value = 0;
    const std::string_view bytes = text(sizeof(T));
    for (size_t i = 0; i < bytes.size(); ++i) {
      value |= uint64_t{static_cast<uint8_t>(bytes[i])} << (8 * i);
    }
    return static_cast<T>(value);
  }
  // Whether `count` items of at least `bytes` each may follow: asked before they get memory.
  bool holds(size_t count, size_t bytes) const { return count <= bytes_.size() / bytes; }
  bool overrun() const { return overrun_; }
  size_t left() const { return bytes_.size(); }

 private:
  std::span<const std::byte> bytes_;
  bool overrun_ = false;
};

template <class... Args>
tl::unexpected<Error> malformed(fmt::format_string<Args...> format, Args&&... args) {
  return fail(ErrorCode::malformed_artifact, "tokenizer table: {}",
              fmt::format(format, std::forward<Args>(args)...));
}

enum class Kind : uint8_t { piece, byte, added, special };

Result<void> check_bytes(const Table& table, std::vector<Kind>& kinds) {
  for (size_t byte = 0; byte < table.byte_ids.size(); ++byte) {
    const uint32_t id = table.byte_ids[byte];
    if (id >= table.size())
      return malformed("token of byte {}: expected one of {}, found {}", byte, table.size(), id);
    const std::string_view piece = table.piece(id);
    if (piece.size() != 1 || static_cast<uint8_t>(piece[0]) != byte) {
      return malformed("token {}: expected the byte {:#04x}, found '{}'", id, byte, piece);
    }
    kinds[id] = Kind::byte;
  }
  return {};
}

Result<void> check_added(const Table& table, std::vector<Kind>& kinds) {
  std::unordered_set<std::string_view> contents;
  for (const auto& [id, special, content] : table.added) {
    if (id >= table.size())
      return malformed("added token: expected one of {}, found {}", table.size(), id);
    if (kinds[id] != Kind::piece)
      return malformed("added token {}: expected it once, and no byte, found it again", id);
    if (content.empty() || valid_utf8(content) != content.size()) {
      return malformed("added token {}: expected UTF-8, found '{}'", id, content);
    }
    if (!contents.insert(content).second)
      return malformed("added tokens: expected '{}' once, found it again", content);
    if (with_spaces(content) != table.piece(id)) {
      return malformed("added token {}: expected its piece '{}', found '{}'", id, table.piece(id),
                       content);
    }
    kinds[id] = special ? Kind::special : Kind::added;
  }
  if (table.bos >= table.size() || kinds[table.bos] != Kind::special) {
    return malformed("bos: expected a special token, found token {}", table.bos);
  }
  return {};
}

Result<void> check_pieces(const Table& table, const std::vector<Kind>& kinds) {
  for (uint32_t id = 0; id < table.size(); ++id) {
    if (kinds[id] == Kind::byte) continue;
    const std::string_view piece = table.piece(id);
    if (piece.empty() || valid_utf8(piece) != piece.size()) {
      return malformed("token {}: expected UTF-8, found '{}'", id, piece);
    }
  }
  return {};
}

// That pieces add up ties every merge to its three tokens; that none makes a special token is why
// plain text cannot produce one.
Result<void> check_merges(const Table& table, const std::vector<Kind>& kinds) {
  for (size_t rank = 0; rank < table.merges.size(); ++rank) {
    const auto [left, right, merged] = table.merges[rank];
    if (left >= table.size() || right >= table.size() || merged >= table.size()) {
      return malformed("merge {}: expected three of {} tokens, found {}, {} and {}", rank,
                       table.size(), left, right, merged);
    }
    if (kinds[left] == Kind::byte || kinds[right] == Kind::byte) {
      return malformed("merge {}: expected tokens that are no bytes, found {} and {}", rank, left,
                       right);
    }
    if (kinds[merged] == Kind::byte || kinds[merged] == Kind::special) {
      return malformed("merge {}: expected an ordinary token, found {}, a byte or special", rank,
                       merged);
    }
    const std::string_view whole = table.piece(merged);
    const std::string_view first = table.piece(left);
    const std::string_view second = table.piece(right);
    if (whole.size() != first.size() + second.size() || !whole.starts_with(first) ||
        !whole.ends_with(second)) {
      return malformed("merge {}: expected '{}{}', found '{}'", rank, first, second, whole);
    }
  }
  return {};
}

Result<void> check(const Table& table) {
  std::vector<Kind> kinds(table.size(), Kind::piece);
  TRY(check_bytes(table, kinds));
  TRY(check_added(table, kinds));
  TRY(check_pieces(table, kinds));
  return check_merges(table, kinds);
}

}  // namespace

std::string with_spaces(std::string_view text) {
  std::string result;
  while (true) {
    const size_t at = text.find(separator);
    result += text.substr(0, at);
    if (at == std::string_view::npos) return result;
    result += ' ';
    text.remove_prefix(at + separator.size());
  }
}

std::vector<std::byte> write_table(const Table& table) {
  Writer writer;
  writer.text(magic);
  writer.number(version);
  writer.number(table.size());
  writer.number(static_cast<uint32_t>(table.merges.size()));
  writer.number(static_cast<uint32_t>(table.added.size()));
  writer.number(table.bos);
  writer.raw(std::as_bytes(std::span(table.source.bytes)));
  for (uint32_t id : table.byte_ids) writer.number(id);
  for (uint32_t id = 0; id < table.size(); ++id) {
    writer.number(static_cast<uint16_t>(table.piece(id).size()));
  }
  writer.text(table.pieces);
  for (const auto& [left, right, merged] : table.merges) {
    writer.number(left);
    writer.number(right);
    writer.number(merged);
  }
  for (const auto& [id, special, content] : table.added) {
    writer.number(id);
    writer.number(static_cast<uint8_t>(special));
    writer.number(static_cast<uint16_t>(content.size()));
    writer.text(content);
  }
  return writer.take();
}

Result<Table> read_table(std::span<const std::byte> bytes) {
  Reader reader(bytes);
  if (reader.text(magic.size()) != magic)
    return malformed("begin: expected '{}', found another", magic);
  if (const auto found = reader.number<uint32_t>(); found != version) {
    return malformed("version: expected {}, found {}", version, found);
  }
  Table table;
  const auto tokens = reader.number<uint32_t>();
  const auto merges = reader.number<uint32_t>();
  const auto added = reader.number<uint32_t>();
  table.bos = reader.number<uint32_t>();
  for (uint8_t& byte : table.source.bytes) byte = reader.number<uint8_t>();
  for (uint32_t& id : table.byte_ids) id = reader.number<uint32_t>();

  if (!reader.holds(tokens, sizeof(uint16_t)))
    return malformed("tokens: expected what {} bytes hold, found {}", reader.left(), tokens);
  table.piece_ends.reserve(tokens);
  uint64_t end = 0;
  for (uint32_t id = 0; id < tokens; ++id) {
    end += reader.number<uint16_t>();
    table.piece_ends.push_back(static_cast<uint32_t>(end));
  }
  if (!reader.holds(end, 1) || end > UINT32_MAX)
    return malformed("pieces: expected at most {} bytes, found {}", reader.left(), end);
  table.pieces = reader.text(end);

  if (!reader.holds(merges, sizeof(Merge)))
    return malformed("merges: expected what {} bytes hold, found {}", reader.left(), merges);
  table.merges.resize(merges);
  for (auto& [left, right, merged] : table.merges) {
    left = reader.number<uint32_t>();
    right = reader.number<uint32_t>();
    merged = reader.number<uint32_t>();
  }

  for (uint32_t i = 0; i < added && !reader.overrun(); ++i) {
    const auto id = reader.number<uint32_t>();
    const auto special = reader.number<uint8_t>();
    if (special > 1)
      return malformed("added token {}: flag: expected 0 or 1, found {}", id, special);
    const auto length = reader.number<uint16_t>();
    table.added.push_back({id, special == 1, std::string(reader.text(length))});
  }
  if (reader.overrun())
    return malformed("end: expected {} added tokens, found the end before", added);
  if (reader.left() != 0)
    return malformed("end: expected no further byte, found {}", reader.left());
  TRY(check(table));
  return table;
}

}  // namespace tandem::text
