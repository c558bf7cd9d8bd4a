// What several commands print.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "tandem/engine.h"

namespace tandem::cli {

// Draws a bar on standard error, if that is a terminal.
std::function<void(uint64_t done, uint64_t total)> progress_bar(std::string_view what);

// A size for people: "8.2 MB".
std::string megabytes(uint64_t bytes);

// "NVIDIA H200", "SwiftShader Device (software)", "cpu".
std::string adapter(const EngineInfo& info);

}  // namespace tandem::cli
