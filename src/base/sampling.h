// What the options of sampling and the stops of a generation may be.
#pragma once

#include "tandem/error.h"
#include "tandem/sampling.h"

namespace tandem {

inline constexpr uint32_t max_stop_ids = 63;

Result<void> check_sampling(const SampleOptions& options);

}  // namespace tandem
