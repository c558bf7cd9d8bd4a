// The file of a folder that keeps what was measured on an adapter.
#pragma once

#include <filesystem>

#include "ops/linear/linear_tuning.h"

namespace tandem::engine {

// Another file whenever driver, library, tiers or kernels change.
std::filesystem::path tuning_file(const std::filesystem::path& folder,
                                  const gpu::AdapterInfo& adapter);

// Refuses what is not a tuning of just this adapter and these kernels.
Result<ops::TunedProducts> read_tuning(const std::filesystem::path& file,
                                       const gpu::AdapterInfo& adapter);

// Makes the folder where there is none. The file appears complete or not at all.
Result<void> write_tuning(const std::filesystem::path& file, const gpu::AdapterInfo& adapter,
                          const ops::TunedProducts& tuned);

}  // namespace tandem::engine
