// SHA-256 through OpenSSL's EVP interface.
#include "base/sha256.h"

#include <openssl/evp.h>

#include "base/error.h"

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

struct Sha256::Context {
  EVP_MD_CTX* evp = EVP_MD_CTX_new();
  bool ok = false;

  Context() { restart(); }
  ~Context() { EVP_MD_CTX_free(evp); }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  void restart() { ok = evp && EVP_DigestInit_ex(evp, EVP_sha256(), nullptr) == 1; }
};

Sha256::Sha256() : context_(std::make_unique<Context>()) {}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::update(std::span<const std::byte> bytes) {
  context_->ok = context_->ok && EVP_DigestUpdate(context_->evp, bytes.data(), bytes.size()) == 1;
}

Digest Sha256::finish() {
  Digest digest;
  if (!context_->ok || EVP_DigestFinal_ex(context_->evp, digest.bytes.data(), nullptr) != 1) {
    digest = {};
  }
  context_->restart();
  return digest;
}

Digest sha256(std::span<const std::byte> bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.finish();
}

}  // namespace tandem
