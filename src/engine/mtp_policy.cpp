#include "engine/mtp_policy.h"

#include <algorithm>

namespace tandem::engine {

void MtpPolicy::add(bool drafted, double ms, uint32_t tokens) {
  // Rounds that were submitted before the last change say nothing of the way that is taken now.
  if (mode_ != Mtp::automatic || drafted != drafts_) return;
  window_ms_ += ms;
  window_tokens_ += tokens;
  tokens_ += tokens;
  if (window_tokens_ < window) return;
  measured(window_ms_ / window_tokens_);
}

void MtpPolicy::measured(double ms_per_token) {
  window_ms_ = 0;
  window_tokens_ = 0;
  ms_per_token_[drafts_] = ms_per_token;
  const double other = ms_per_token_[!drafts_];
  const bool slower = ms_per_token > other;
  if (other == 0) {
    change_over();
  } else if (trial_) {
    trial_ = false;
    interval_ = slower ? std::min(2 * interval_, longest_interval) : first_interval;
    if (slower) change_over();
  } else if (slower || tokens_ >= interval_) {
    trial_ = true;
    change_over();
  }
}

void MtpPolicy::change_over() {
  drafts_ = !drafts_;
  tokens_ = 0;
}

}  // namespace tandem::engine
