// Private to the browser's face of the engine.
#pragma once

namespace tandem {

// Where JavaScript writes the time before it calls, in milliseconds.
double* clock_address();

}  // namespace tandem
