// Formats what several commands print.
#include "cli/output.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

namespace tandem::cli {

std::function<void(uint64_t, uint64_t)> progress_bar(std::string_view what) {
  if (isatty(STDERR_FILENO) == 0) return {};
  return [what = std::string(what), shown = -1](uint64_t done, uint64_t total) mutable {
    const int percent = total == 0 ? 100 : static_cast<int>(done * 100 / total);
    if (percent == shown) return;
    shown = percent;
    fmt::print(stderr, "\r{} [{:<25}] {:3} %{}", what,
               std::string(static_cast<size_t>(percent) / 4, '='), percent,
               done >= total ? "\n" : "");
    std::fflush(stderr);
  };
}

std::string megabytes(uint64_t bytes) {
  return fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6);
}

std::string adapter(const EngineInfo& info) {
  return fmt::format("{}{}", info.adapter, info.software ? " (software)" : "");
}

}  // namespace tandem::cli
