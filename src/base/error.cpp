// Names and meanings of the error codes.
#include "base/error.h"

#include <algorithm>

namespace tandem {
namespace {

struct Entry {
  ErrorCode code;
  std::string_view name;
  std::string_view meaning;
};

constexpr Entry entries[] = {
    {ErrorCode::invalid_argument, "invalid_argument", "an option or argument is out of its range"},
    {ErrorCode::io, "io", "the operating system refused a read or a write"},
    {ErrorCode::not_found, "not_found", "a file, tensor, adapter or name does not exist"},
    {ErrorCode::already_exists, "already_exists",
     "an output is there already and is never replaced"},
    {ErrorCode::unsafe_path, "unsafe_path", "a path leaves its folder, or is a symbolic link"},
    {ErrorCode::malformed_json, "malformed_json", "text is not JSON, or has a duplicate key"},
    {ErrorCode::unknown_key, "unknown_key",
     "a JSON object has a key that is not part of its schema"},
    {ErrorCode::missing_key, "missing_key", "a JSON object lacks a key that its schema requires"},
    {ErrorCode::wrong_type, "wrong_type", "a JSON value has another type than its schema says"},
    {ErrorCode::bad_value, "bad_value", "a field is out of range or contradicts another"},
    {ErrorCode::unsupported, "unsupported", "a valid input asks for something that is not built"},
    {ErrorCode::malformed_checkpoint, "malformed_checkpoint",
     "a checkpoint's files are damaged or disagree with its config"},
    {ErrorCode::malformed_artifact, "malformed_artifact",
     "an artifact's files are damaged or disagree with its manifest"},
    {ErrorCode::hash_mismatch, "hash_mismatch", "bytes do not have the sha256 that was promised"},
    {ErrorCode::unverified, "unverified",
     "an artifact's sources match no pin, and only verified ones are wanted"},
    {ErrorCode::malformed_text, "malformed_text",
     "a tokenizer, template or token id is not usable"},
    {ErrorCode::limit_exceeded, "limit_exceeded",
     "a plan needs more than the adapter or an option allows"},
    {ErrorCode::context_exceeded, "context_exceeded", "a prompt does not fit the context"},
    {ErrorCode::no_adapter, "no_adapter", "no WebGPU adapter matches the request"},
    {ErrorCode::gpu_validation, "gpu_validation",
     "WebGPU refused a kernel, a binding or a command"},
    {ErrorCode::out_of_memory, "out_of_memory", "the GPU could not allocate a buffer"},
    {ErrorCode::device_lost, "device_lost", "the GPU device is gone; open the engine again"},
    {ErrorCode::not_finite, "not_finite",
     "logits are no numbers: damaged weights, or a driver at fault"},
    {ErrorCode::cancelled, "cancelled", "the caller asked for an end; nothing is left of the work"},
    {ErrorCode::internal, "internal", "a defect in Tandem itself"},
};

const Entry& entry(ErrorCode code) {
  for (const Entry& candidate : entries) {
    if (candidate.code == code) return candidate;
  }
  return entries[std::size(entries) - 1];
}

// The bytes of the UTF-8 character that a text begins with; 0: it begins with none.
size_t character_bytes(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const size_t bytes = first < 0xc2   ? 0
                       : first < 0xe0 ? 2
                       : first < 0xf0 ? 3
                       : first < 0xf5 ? 4
                                      : 0;
  if (bytes == 0 || text.size() < bytes) return 0;
  for (size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  const bool overlong = (first == 0xe0 && byte(1) < 0xa0) || (first == 0xf0 && byte(1) < 0x90);
  return overlong ? 0 : bytes;
}

uint32_t code_point(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return first;
  uint32_t point = first & (0x7f >> character.size());
  for (const char byte : character.substr(1)) point = point << 6 | (byte & 0x3f);
  return point;
}

// What changes how other text is shown: controls, separators of lines and paragraphs, and marks of
// direction.
bool acts(uint32_t point) {
  return (point >= 0x80 && point < 0xa0) || point == 0x061c || point == 0x200e || point == 0x200f ||
         (point >= 0x2028 && point <= 0x202e) || (point >= 0x2066 && point <= 0x2069);
}

}  // namespace

std::string printable(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const size_t bytes = character_bytes(text);
    const unsigned char first = static_cast<unsigned char>(text[0]);
    if (bytes == 0 || first < 0x20 || first == 0x7f) {
      result += fmt::format("\\x{:02x}", first);
    } else if (const uint32_t point = code_point(text.substr(0, bytes)); acts(point)) {
      result += fmt::format("\\u{:04x}", point);
    } else {
      result += text.substr(0, bytes);
    }
    text.remove_prefix(std::max<size_t>(bytes, 1));
  }
  return result;
}

std::string first_few(std::span<const std::string> names) {
  constexpr size_t shown = 5;
  if (names.empty()) return "none";
  std::string text = fmt::format("{}", fmt::join(names.first(std::min(shown, names.size())), ", "));
  if (names.size() > shown) text += fmt::format(" and {} more", names.size() - shown);
  return text;
}

std::string_view name(ErrorCode code) { return entry(code).name; }
std::string_view meaning(ErrorCode code) { return entry(code).meaning; }

}  // namespace tandem
