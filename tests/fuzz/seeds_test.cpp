// The fuzzers' seeds: each is accepted or refused as its name says, so that the fuzzers start on
// both sides of what the readers accept.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "fuzz/targets.h"

namespace tandem::test {
namespace {

namespace fs = std::filesystem;

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(FuzzSeeds, AreAcceptedOrRefusedAsTheirNamesSay) {
  for (const FuzzTarget& target : fuzz_targets()) {
    int accepted = 0, refused = 0;
    const fs::path folder = fs::path(TANDEM_SOURCE_DIR) / "tests/fuzz/seeds" / target.name;
    for (const auto& seed : fs::directory_iterator(folder)) {
      const bool expected = seed.path().filename().string().starts_with("accepted");
      const Result<void> read = target.read(read_file(seed.path()));
      EXPECT_EQ(read.has_value(), expected)
          << seed.path() << ": " << (read ? "accepted" : read.error().message);
      (expected ? accepted : refused) += 1;
    }
    EXPECT_GT(accepted, 0) << target.name;
    EXPECT_GT(refused, 0) << target.name;
  }
}

}  // namespace
}  // namespace tandem::test
