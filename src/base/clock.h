// A clock that only goes forward.
#pragma once

namespace tandem {

// Milliseconds since some moment in the past. In the browser it stands still during a call from
// JavaScript, which sets it.
double now_ms();

}  // namespace tandem
