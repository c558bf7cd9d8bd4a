#include "cli/measurement.h"

#include <fmt/chrono.h>

#include <algorithm>
#include <ctime>
#include <filesystem>

#include "cli/output.h"
#include "engine/bench.h"

namespace tandem::cli {
namespace {

std::string artifact_name(const std::string& folder) {
  return std::filesystem::weakly_canonical(folder).filename().string();
}

std::string quoted(const std::string& word) {
  return word.find(' ') == std::string::npos ? word : fmt::format("'{}'", word);
}

}  // namespace

std::string command_line(const CLI::App& app) {
  std::string line = "tandem " + app.get_name();
  for (const CLI::Option* option : app.get_options()) {
    const std::string name = option->get_name();
    if (option->count() == 0 || name == "--json" || name == "--trace") continue;
    if (name == "artifact") {
      line += " " + quoted(artifact_name(option->results().front()));
      continue;
    }
    if (option->get_expected_max() == 0) {
      line += " " + name;
      continue;
    }
    const bool list = option->get_delimiter() != '\0';
    const bool is_path = name == "--assistant" || name == "--sources";
    for (const std::string& value : option->results()) {
      const bool first = &value == &option->results().front();
      line += (list && !first ? "," : " " + name + " ") +
              quoted(is_path ? artifact_name(value) : value);
    }
  }
  return line;
}

Json measurement(std::string_view kind, const CLI::App& app, const EngineInfo& info,
                 const EngineOptions& options) {
  const std::string folder = app.get_option("artifact")->results().front();
  return {{"schema", 1},
          {"kind", kind},
          {"command", command_line(app)},
          {"commit", commit},
          {"version", TANDEM_VERSION},
          {"date", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)))},
          {"artifact",
           {{"name", artifact_name(folder)},
            {"digest", info.artifact},
            {"provenance", info.provenance},
            {"synthetic", info.provenance == "synthetic"},
            {"weight_bytes", info.weight_bytes}}},
          {"device",
           {{"adapter", info.adapter},
            {"software", info.software},
            {"driver", info.driver},
            {"library", info.library},
            {"tiers", info.tiers},
            {"kernel_closure", info.kernel_closure}}},
          {"options",
           {{"kv", name(info.kv)},
            {"activations", name(info.activations)},
            {"context", info.context},
            {"input_bound", info.input_bound},
            {"rounds_in_flight", options.rounds_in_flight},
            {"pass_per_dispatch", options.pass_per_dispatch},
            {"tuned_shapes", info.tuned_shapes}}}};
}

Json rate_samples(std::span<const double> tokens_per_second) {
  const engine::Spread spread = engine::spread(tokens_per_second);
  return {{"tokens_per_second", tokens_per_second},
          {"median", spread.median},
          {"min", spread.min},
          {"max", spread.max}};
}

std::string origin(const Json& measurement) {
  const Json& device = measurement.at("device");
  const auto text = [](const Json& value) { return value.get<std::string>(); };
  // The CPU has neither driver nor library.
  const auto part = [&](std::string_view before, const char* key) {
    const std::string value = text(device.at(key));
    return value.empty() ? value : fmt::format(", {}{}", before, value);
  };
  return fmt::format("{} on {}{}{}{}; commit {}, {}", text(measurement.at("artifact").at("name")),
                     text(device.at("adapter")),
                     device.at("software").get<bool>() ? " (software)" : "",
                     part("driver ", "driver"), part("", "library"), text(measurement.at("commit")),
                     text(measurement.at("date")));
}

Result<JsonFile> JsonFile::begin(const std::string& path) {
  JsonFile result;
  if (path.empty()) return result;
  TRY_ASSIGN(result.file_, FilePublication::begin(path));
  return result;
}

std::optional<std::filesystem::path> JsonFile::path() const {
  return file_ ? std::optional(file_->destination()) : std::nullopt;
}

Result<void> JsonFile::write(const Json& value) {
  if (!file_) return {};
  TRY(file_->file().write(canonical_json(value)));
  return file_->commit();
}

Result<void> JsonFile::write_lines(std::span<const Json> values) {
  if (!file_) return {};
  for (const Json& value : values) TRY(file_->file().write(value.dump() + "\n"));
  return file_->commit();
}

}  // namespace tandem::cli
