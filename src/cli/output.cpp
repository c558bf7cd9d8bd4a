// Formats what several commands print.
#include "cli/output.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "base/error.h"

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

std::string printable_lines(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const size_t line = std::min(text.find_first_of("\n\t"), text.size());
    result += printable(text.substr(0, line));
    if (line < text.size()) result += text[line];
    text.remove_prefix(std::min(line + 1, text.size()));
  }
  return result;
}

std::string ignored_settings(std::span<const std::string> keys) {
  if (keys.empty()) return {};
  return fmt::format("ignored settings of generation_config.json: {}\n",
                     printable(fmt::format("{}", fmt::join(keys, ", "))));
}

std::string answer_text(std::string_view text) {
  return isatty(STDOUT_FILENO) != 0 ? printable_lines(text) : std::string(text);
}

std::string megabytes(uint64_t bytes) {
  return fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6);
}

std::string counted(uint64_t count, std::string_view one) {
  return fmt::format("{} {}{}", count, one, count == 1 ? "" : "s");
}

std::string_view name(KvPrecision kv) { return kv == KvPrecision::f16 ? "f16" : "f32"; }

std::string_view name(Activations activations) {
  return activations == Activations::int8 ? "int8" : "f32";
}

std::string adapter(const EngineInfo& info) {
  return fmt::format("{}{}{}", printable(info.adapter), info.software ? " (software)" : "",
                     info.activations == Activations::int8 ? ", int8 activations" : "");
}

}  // namespace tandem::cli
