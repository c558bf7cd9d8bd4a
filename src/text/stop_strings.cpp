#include "text/stop_strings.h"

#include <algorithm>
#include <utility>

#include "text/utf8.h"

namespace tandem::text {
namespace {

// How many bytes at the end of `text` are the beginning of `string` and not all of it.
size_t overlap(std::string_view text, std::string_view string) {
  size_t bytes = std::min(text.size(), string.size() - 1);
  while (!text.ends_with(string.substr(0, bytes))) --bytes;
  return bytes;
}

}  // namespace

Result<StopStrings> StopStrings::make(std::span<const std::string> strings) {
  StopStrings made;
  for (const std::string& string : strings) {
    if (string.empty()) return fail(ErrorCode::invalid_argument, "a stop string is empty");
    if (const size_t valid = valid_utf8(string); valid < string.size()) {
      return fail(ErrorCode::malformed_text, "a stop string is not UTF-8 at byte {}", valid);
    }
    made.strings_.push_back(string);
  }
  return made;
}

std::string StopStrings::push(std::string_view piece) {
  if (found_) return {};
  std::string text = std::exchange(held_, {});
  text += piece;
  size_t begin = text.size(), end = text.size() + 1;  // of the stop string that ends first
  size_t held = 0;
  for (const std::string& string : strings_) {
    const size_t at = text.find(string);
    if (at == std::string::npos) {
      held = std::max(held, overlap(text, string));
    } else if (std::pair(at + string.size(), at) < std::pair(end, begin)) {
      begin = at;
      end = at + string.size();
    }
  }
  found_ = end <= text.size();
  if (!found_) {
    begin = text.size() - held;
    held_ = text.substr(begin);
  }
  text.resize(begin);
  return text;
}

std::string StopStrings::finish() { return std::exchange(held_, {}); }

}  // namespace tandem::text
