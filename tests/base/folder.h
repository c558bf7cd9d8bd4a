// A folder of its own for each test of files, and short ways to look at what lies in it.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::test {

class FolderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "tandem-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr) << name;
    folder_ = name;
  }
  void TearDown() override {
    std::error_code ignored;
    std::filesystem::permissions(folder_, std::filesystem::perms::owner_all, ignored);
    std::filesystem::remove_all(folder_, ignored);
  }

  std::filesystem::path path(std::string_view name) const { return folder_ / name; }
  void put(std::string_view name, std::string_view text) const {
    std::ofstream(path(name), std::ios::binary) << text;
  }
  std::string content(const std::filesystem::path& file) const {
    std::ifstream stream(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  // The names in the folder, hidden ones included.
  std::vector<std::string> names(std::string_view below = ".") const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(path(below))) {
      names.push_back(entry.path().filename().string());
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  std::filesystem::path folder_;
};

}  // namespace tandem::test
