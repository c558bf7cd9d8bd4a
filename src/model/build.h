// What this build of the model has.
#pragma once

namespace tandem::model {

// The assistant and its operators: all builds but the browser's plain module.
#ifdef TANDEM_PLAIN
inline constexpr bool has_mtp = false;
#else
inline constexpr bool has_mtp = true;
#endif

}  // namespace tandem::model
