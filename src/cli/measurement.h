// What every measured result says of its origin: artifact, device, options, build, date, command.
#pragma once

#include <CLI/CLI.hpp>
#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/publication.h"
#include "cli/engine_flags.h"

namespace tandem::cli {

// The commit that was built: "0123456789ab"; with a "+" if files differed from it; or "unknown".
extern const std::string_view commit;

// The command as it was given, without its output files and with an artifact's name for its path:
// "tandem bench atlas --repeat 3".
std::string command_line(const CLI::App& app);

// The date (UTC) is that of the call.
Json measurement(std::string_view kind, const CLI::App& app, const EngineInfo& info,
                 const EngineOptions& options);

// The work that goes before the samples of a rate.
inline constexpr std::chrono::milliseconds warm_up{200};

// Rates in tokens a second, with their median, min and max.
Json rate_samples(std::span<const double> tokens_per_second);

// "adapter: NVIDIA H200, driver ..., library ...; commit ..., date", for people.
std::string origin(const Json& measurement);

// A file for JSON, if one is asked for: begun before anything is measured, so that a file that
// cannot be made costs nothing.
class JsonFile {
 public:
  static Result<JsonFile> begin(const std::string& path);  // empty: none
  std::optional<std::filesystem::path> path() const;
  Result<void> write(const Json& value);
  Result<void> write_lines(std::span<const Json> values);  // one to a line

 private:
  std::optional<FilePublication> file_;
};

}  // namespace tandem::cli
