// The configs that the tests of spec/ read.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <string_view>

#include "base/json.h"
#include "spec/config.h"

namespace tandem::test {

inline std::string test_text(std::string_view path_below_tests) {
  const std::string path = std::string(TANDEM_SOURCE_DIR "/tests/") + std::string(path_below_tests);
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path << ": cannot be read";
  return {std::istreambuf_iterator<char>(file), {}};
}

inline Json test_json(std::string_view path_below_tests) {
  return parse_json(test_text(path_below_tests), path_below_tests).value_or(Json());
}

// The models of golden/geometry.json.
inline Json golden_models() { return test_json("golden/geometry.json")["cases"]; }

inline spec::Config read_good(const Json& json) {
  auto config = spec::read_config(json.dump(), "config.json");
  EXPECT_TRUE(config) << config.error().message;
  return config.value_or(spec::Config{});
}

}  // namespace tandem::test
