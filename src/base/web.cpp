// What base/ takes from the system elsewhere: SHA-256 without a crypto library, and a clock that
// JavaScript sets.
#include "base/web.h"

#include "base/clock.h"
#include "base/sha256_blocks.h"

namespace tandem {
namespace {

double now = 0;

}  // namespace

double now_ms() { return now; }
double* clock_address() { return &now; }

struct Sha256::Context : Sha256Blocks {};

Sha256::Sha256() : context_(std::make_unique<Context>()) {}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::update(std::span<const std::byte> bytes) { context_->update(bytes); }

Digest Sha256::finish() {
  const Digest digest = context_->finish();
  *context_ = {};
  return digest;
}

}  // namespace tandem
