// The ids of a session's timeline, and for how many of them there is KV: all but the last one
// generated, which was never run.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tandem::engine {

class History {
 public:
  // A prompt that has been run.
  void begin(std::span<const uint32_t> prompt);
  // A generated token.
  void append(uint32_t id);
  void clear();

  const std::vector<uint32_t>& ids() const { return ids_; }

  // How many of the prompt's first tokens have KV already. At least one is left to run.
  uint32_t shared(std::span<const uint32_t> prompt) const;

 private:
  std::vector<uint32_t> ids_;
  uint32_t with_kv_ = 0;
};

}  // namespace tandem::engine
