// SHA-256 digests.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace tandem {

struct Digest {
  std::array<uint8_t, 32> bytes{};

  std::string hex() const;  // 64 lower-case digits
  // Empty unless `hex` is 64 lower-case hexadecimal digits.
  static std::optional<Digest> from_hex(std::string_view hex);

  // The zero digest stands for "not computed" and equals nothing, not even itself.
  bool operator==(const Digest& other) const;
};

// Hashes what arrives in pieces. If the crypto library has no SHA-256, the digest is zero.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  void update(std::span<const std::byte> bytes);
  void update(std::string_view text) { update(std::as_bytes(std::span<const char>(text))); }
  // The digest of everything since the beginning or the last call of finish.
  Digest finish();

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

Digest sha256(std::span<const std::byte> bytes);
inline Digest sha256(std::string_view text) {
  return sha256(std::as_bytes(std::span<const char>(text)));
}

}  // namespace tandem
