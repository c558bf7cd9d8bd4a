// The block formats of GGML: values against the format read in double, and against what the Python
// package of llama.cpp makes of the same bytes (tools/golden_gguf.py).
#include "exporter/ggml_blocks.h"

#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "base/half.h"
#include "support/gguf.h"
#include "support/golden.h"

namespace tandem::test {
namespace {

using spec::WeightType;

constexpr std::string_view quantized[] = {"Q4_0", "Q4_1", "Q5_0", "Q5_1",
                                          "Q8_0", "Q4_K", "Q5_K", "Q6_K"};

std::vector<float> widened(std::string_view type, const std::string& blocks) {
  const exporter::BlockType& layout = *exporter::block_type(type);
  std::vector<float> values(blocks.size() / layout.bytes * layout.values);
  exporter::widen_blocks(type, reinterpret_cast<const std::byte*>(blocks.data()), values);
  return values;
}

TEST(GgmlBlocks, ValuesAreTheTrueOnesRoundedOnce) {
  for (const std::string_view type : quantized) {
    ASSERT_TRUE(exporter::is_quantized(type));
    const std::string blocks = random_blocks(type, 8192, 7);
    const std::vector<double> expected = block_values(type, blocks);
    const std::vector<float> found = widened(type, blocks);
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < found.size(); ++i) {
      ASSERT_EQ(found[i], static_cast<float>(expected[i])) << type << " " << i;
    }
  }
  for (const std::string_view type : {"F32", "BF16", "Q2_K", "IQ4_XS", "I32", "Q9_0"}) {
    EXPECT_FALSE(exporter::is_quantized(type)) << type;
  }
}

std::string from_hex(const std::string& hex) {
  std::string bytes;
  for (size_t i = 0; i < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  }
  return bytes;
}

TEST(GgmlBlocks, ValuesAreThoseOfLlamaCpp) {
  const auto golden = nlohmann::json::parse(
      read_text(std::string(TANDEM_SOURCE_DIR) + "/tests/golden/gguf_blocks.json"));
  for (const std::string_view type : quantized) {
    const auto& entry = golden.at(std::string(type));
    const std::vector<float> found = widened(type, from_hex(entry.at("blocks")));
    const std::string expected = from_hex(entry.at("values"));
    ASSERT_EQ(found.size() * sizeof(float), expected.size()) << type;
    for (size_t i = 0; i < found.size(); ++i) {
      float value;
      std::memcpy(&value, expected.data() + i * sizeof(value), sizeof(value));
      ASSERT_EQ(found[i], value) << type << " " << i;
    }
  }
}

struct Planes {
  std::vector<std::byte> values, scales;
  exporter::RowReport report;
};

Planes keep(WeightType type, const std::string& blocks) {
  const uint32_t block_bytes = type == WeightType::q4_0 ? 18 : 34;
  Planes planes;
  planes.values.resize(blocks.size() / block_bytes * (block_bytes - 2));
  planes.scales.resize(blocks.size() / block_bytes * 2);
  planes.report =
      exporter::keep_row(type, std::as_bytes(std::span(blocks)), planes.values, planes.scales);
  return planes;
}

TEST(GgmlBlocks, KeptBlocksAreMovedBitByBit) {
  const std::pair<std::string_view, WeightType> kept[] = {{"Q4_0", WeightType::q4_0},
                                                          {"Q8_0", WeightType::q8_0}};
  for (const auto& [name, type] : kept) {
    EXPECT_TRUE(exporter::is_kept(name, type));
    const std::string blocks = random_blocks(name, 256, 3);
    const uint32_t block_bytes = exporter::block_type(name)->bytes;
    const Planes planes = keep(type, blocks);
    EXPECT_TRUE(planes.report.exact && planes.report.finite);
    for (size_t b = 0; b < 8; ++b) {
      const char* block = &blocks[b * block_bytes];
      EXPECT_EQ(std::memcmp(&planes.scales[2 * b], block, 2), 0);
      EXPECT_EQ(std::memcmp(&planes.values[b * (block_bytes - 2)], block + 2, block_bytes - 2), 0);
    }
  }
  EXPECT_FALSE(exporter::is_kept("Q4_0", WeightType::q8_0));
  EXPECT_FALSE(exporter::is_kept("Q8_0", WeightType::f16));
  EXPECT_FALSE(exporter::is_kept("Q4_1", WeightType::q4_0));
}

// Scales that no artifact holds: subnormal ones are raised, infinite ones reported.
TEST(GgmlBlocks, ScalesThatAreNotKept) {
  std::string blocks = random_blocks("Q4_0", 64, 5);
  blocks.replace(18, 2, std::string("\x00\x02", 2));  // 2^-15
  const Planes raised = keep(WeightType::q4_0, blocks);
  EXPECT_EQ(raised.report.raised, 1u);
  EXPECT_TRUE(raised.report.finite);
  uint16_t scale;
  std::memcpy(&scale, &raised.scales[2], sizeof(scale));
  EXPECT_EQ(std::abs(from_half(scale)), 0x1p-14f);
  blocks.replace(18, 2, std::string("\x00\x7C", 2));
  EXPECT_FALSE(keep(WeightType::q4_0, blocks).report.finite);
  blocks.replace(18, 2, std::string("\x00\x00", 2));
  EXPECT_TRUE(keep(WeightType::q4_0, blocks).report.exact);
}

}  // namespace
}  // namespace tandem::test
