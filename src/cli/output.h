// What several commands print.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "tandem/engine.h"

namespace tandem::cli {

// Draws a bar on standard error, if that is a terminal.
std::function<void(uint64_t done, uint64_t total)> progress_bar(std::string_view what);

// Text for people, whose newlines and tabs stay: `printable` of all else.
std::string printable_lines(std::string_view text);

// "ignored settings of generation_config.json: a, b\n", or nothing.
std::string ignored_settings(std::span<const std::string> keys);

// What a model says: to a terminal as printable_lines, else byte by byte.
std::string answer_text(std::string_view text);

// A size for people: "8.2 MB".
std::string megabytes(uint64_t bytes);

// "1 token", "2 tokens".
std::string counted(uint64_t count, std::string_view one);

// "NVIDIA H200", "SwiftShader Device (software)", "cpu".
std::string adapter(const EngineInfo& info);
std::string_view name(KvPrecision kv);
std::string_view name(Activations activations);

}  // namespace tandem::cli
