// How a caller ends long work before it is done.
#pragma once

#include <atomic>

#include "base/error.h"

namespace tandem {

// Whoever wants the work to end sets it, on any thread or in a signal handler; the work looks at it
// between its pieces, undoes what it has done and returns ErrorCode::cancelled.
using CancelFlag = std::atomic<bool>;

inline Result<void> check_cancel(const CancelFlag* cancel) {
  if (cancel == nullptr || !cancel->load(std::memory_order_relaxed)) return {};
  return fail(ErrorCode::cancelled, "ended as asked, before it was done; nothing is left of it");
}

}  // namespace tandem
