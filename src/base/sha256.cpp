// SHA-256 through OpenSSL's EVP interface.
#include "base/sha256.h"

#include <openssl/evp.h>

namespace tandem {

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

}  // namespace tandem
