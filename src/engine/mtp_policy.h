// Whether the next round drafts: always, never, or as long as that was measured to be the faster
// way to a token.
#pragma once

#include <array>
#include <cstdint>

#include "tandem/engine.h"

namespace tandem::engine {

// In `automatic` both ways are measured over `window` tokens, drafts first. The faster one is kept,
// and the other is tried again as soon as the kept one measures slower than the other last did, or
// else after `first_interval` tokens; after a trial in vain twice as many, up to
// `longest_interval`. It keeps what it has measured from one generation to the next.
class MtpPolicy {
 public:
  static constexpr uint32_t window = 32;
  static constexpr uint32_t first_interval = 512;
  static constexpr uint32_t longest_interval = 8192;

  void set_mode(Mtp mode) { mode_ = mode; }

  bool drafts() const { return mode_ == Mtp::on || (mode_ == Mtp::automatic && drafts_); }

  // A round that was harvested: `ms` after the one before it, with so many tokens.
  void add(bool drafted, double ms, uint32_t tokens);

 private:
  void measured(double ms_per_token);
  void change_over();

  Mtp mode_ = Mtp::off;
  bool drafts_ = true;                       // the way that is taken
  bool trial_ = false;                       // to see whether it is the faster one by now
  std::array<double, 2> ms_per_token_ = {};  // plain, with drafts; 0: not measured yet
  double window_ms_ = 0;
  uint32_t window_tokens_ = 0;
  uint32_t tokens_ = 0;  // since the last change
  uint32_t interval_ = first_interval;
};

}  // namespace tandem::engine
