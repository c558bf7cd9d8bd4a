// The end of a round on the host.
#include <algorithm>

#include "ops/advance/advance.h"

namespace tandem::ops {

Step advance_reference(const Step& step, uint32_t token, uint32_t context,
                       std::span<const uint32_t> stop_ids, std::span<uint32_t> timeline) {
  if (step.rows == 0) return step;
  Step next = step;
  next.token = token;
  next.position += 1;
  next.remaining -= 1;
  next.rounds += 1;
  timeline[next.position] = token;
  StopCode stop = StopCode::none;
  if (std::find(stop_ids.begin(), stop_ids.end(), token) != stop_ids.end()) {
    stop = StopCode::stop_id;
  } else if (next.remaining == 0) {
    stop = StopCode::length;
  } else if (next.position == context) {
    stop = StopCode::context;
  }
  next.stop = static_cast<uint32_t>(stop);
  if (stop != StopCode::none) next.rows = 0;
  return next;
}

}  // namespace tandem::ops
