#include "artifact/finite.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>

#include "base/error.h"

namespace tandem::artifact {
namespace {

// The index of the first number whose exponent has all its bits, which is infinite or no number.
// Whole blocks are looked at first, as there is hardly ever one.
template <class Word>
std::optional<size_t> find_not_finite(std::span<const std::byte> bytes, Word exponent) {
  constexpr size_t block = 4096;
  const size_t count = bytes.size() / sizeof(Word);
  const auto is_not_finite = [&](size_t i) {
    Word word = 0;
    std::memcpy(&word, &bytes[i * sizeof(Word)], sizeof(Word));
    return static_cast<Word>(word & exponent) == exponent;
  };
  for (size_t begin = 0; begin < count; begin += block) {
    const size_t end = std::min(begin + block, count);
    bool any = false;
    for (size_t i = begin; i < end; ++i) any |= is_not_finite(i);
    if (!any) continue;
    for (size_t i = begin; i < end; ++i) {
      if (is_not_finite(i)) return i;
    }
  }
  return std::nullopt;
}

}  // namespace

Result<void> check_finite(const Piece& piece, std::span<const std::byte> bytes,
                          std::string_view file) {
  for (const Segment& segment : piece.segments) {
    const std::span numbers = bytes.subspan(segment.piece_offset, segment.bytes);
    std::optional<size_t> found;
    if (segment.number_bytes == 2) found = find_not_finite<uint16_t>(numbers, 0x7c00);
    if (segment.number_bytes == 4) found = find_not_finite<uint32_t>(numbers, 0x7f800000);
    if (!found) continue;
    return fail(ErrorCode::malformed_artifact,
                "{}: {}[{}]: expected a finite number, found an infinity or NaN; export the "
                "checkpoint again",
                file, segment.plane, segment.plane_offset / segment.number_bytes + *found);
  }
  return {};
}

}  // namespace tandem::artifact
