// The limits of an adapter as a JSON file: `tandem devices` writes one, `tandem inspect` plans for
// it.
#pragma once

#include <filesystem>
#include <string>

#include "gpu/device.h"

namespace tandem::cli {

// One object with the fields of gpu::Limits as its keys.
std::string limits_text(const gpu::Limits& limits);

// Refuses missing and unknown keys, and what no WebGPU adapter has.
Result<gpu::Limits> read_limits(const std::filesystem::path& file);

}  // namespace tandem::cli
