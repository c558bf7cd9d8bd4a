#include "base/clock.h"

#include <chrono>

namespace tandem {

double now_ms() {
  using Milliseconds = std::chrono::duration<double, std::milli>;
  return Milliseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace tandem
