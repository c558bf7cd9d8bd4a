// The fuzzers' seeds: each is accepted or refused as its name says, so that the fuzzers start on
// both sides of what the readers accept.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

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

// A change that a fuzzer would make: some bytes of another value, taken out, doubled, or replaced
// by those of another place.
std::string changed(std::string text, std::mt19937& random) {
  const auto below = [&](size_t bound) { return random() % std::max<size_t>(bound, 1); };
  for (size_t changes = 1 + below(3); changes > 0 && !text.empty(); --changes) {
    const size_t begin = below(text.size()), count = 1 + below(std::min<size_t>(text.size(), 16));
    switch (below(4)) {
      case 0:
        text[begin] = static_cast<char>(text[begin] ^ (1 << below(8)));
        break;
      case 1:
        text.erase(begin, count);
        break;
      case 2:
        text.insert(begin, text.substr(begin, count));
        break;
      default:
        text.replace(begin, count, text.substr(below(text.size()), count));
    }
  }
  return text;
}

// A target aborts where what it accepts breaks its promise.
TEST(FuzzSeeds, ChangedBytesBreakNoTarget) {
  std::mt19937 random(1);
  for (const FuzzTarget& target : fuzz_targets()) {
    const fs::path folder = fs::path(TANDEM_SOURCE_DIR) / "tests/fuzz/seeds" / target.name;
    std::vector<fs::path> seeds;
    for (const auto& seed : fs::directory_iterator(folder)) seeds.push_back(seed.path());
    std::sort(seeds.begin(), seeds.end());
    int refused = 0;
    for (const fs::path& path : seeds) {
      const std::string seed = read_file(path);
      for (int i = 0; i < 300; ++i) refused += target.read(changed(seed, random)) ? 0 : 1;
    }
    EXPECT_GT(refused, 0) << target.name;
  }
}

}  // namespace
}  // namespace tandem::test
