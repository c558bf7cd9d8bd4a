// Whole numbers of the command line, read strictly: CLI11 takes what is too large for the largest.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdint>
#include <string>

namespace tandem::cli {

// Decimal digits alone, below 2^64. Throws CLI11's error of a wrong value.
inline uint64_t read_whole_number(const std::string& option, const std::string& text) {
  uint64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [next, error] = std::from_chars(text.data(), end, number);
  if (error == std::errc() && next == end) return number;
  throw CLI::ValidationError(
      option, fmt::format("{}: expected a whole number from 0 to 18446744073709551615", text));
}

}  // namespace tandem::cli
