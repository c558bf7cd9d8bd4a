// What lies under a session, for what the public API does not offer: times of dispatches, counts of
// them, scripted drafts.
#pragma once

#include "model/model.h"
#include "tandem/engine.h"

namespace tandem::engine {

struct SessionSequence {
  static model::Sequence& of(Session& session);
};

}  // namespace tandem::engine
