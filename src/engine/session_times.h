// What a timed engine's session has run.
#pragma once

#include <vector>

#include "engine/profile.h"
#include "tandem/engine.h"

namespace tandem::engine {

struct SessionTimes {
  // Of all rounds harvested since the last call; none where submissions are not timed.
  static std::vector<SubmissionTimes> take(Session& session);
};

}  // namespace tandem::engine
