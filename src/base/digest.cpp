// Digests as hexadecimal digits, and the digest of bytes at once.
#include "base/error.h"
#include "base/sha256.h"

namespace tandem {

std::string Digest::hex() const { return fmt::format("{:02x}", fmt::join(bytes, "")); }

std::optional<Digest> Digest::from_hex(std::string_view hex) {
  Digest digest;
  if (hex.size() != 2 * digest.bytes.size()) return std::nullopt;
  constexpr std::string_view digits = "0123456789abcdef";
  for (size_t i = 0; i < digest.bytes.size(); ++i) {
    const size_t high = digits.find(hex[2 * i]), low = digits.find(hex[2 * i + 1]);
    if (high == digits.npos || low == digits.npos) return std::nullopt;
    digest.bytes[i] = static_cast<uint8_t>(high << 4 | low);
  }
  return digest;
}

bool Digest::operator==(const Digest& other) const {
  return bytes == other.bytes && bytes != decltype(bytes){};
}

Digest sha256(std::span<const std::byte> bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.finish();
}

}  // namespace tandem
