// Tensors of several bands: bounded memory, every row in its place.
#include "exporter/bands.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>

#include "exporter/decode.h"
#include "support/checkpoint.h"
#include "support/refusal.h"

namespace tandem::test {
namespace {

using exporter::Band;
using exporter::BoundTensor;
using exporter::Checkpoint;

constexpr uint32_t columns = 32;
constexpr uint32_t source_rows = 300'000;
constexpr uint64_t largest_band = 64 << 20;

// Every row of source s is one value of its own, with 8 significant bits.
float value(uint32_t source, uint64_t row) {
  return std::bit_cast<float>(uint32_t(0x3f80 + source * 64 + row % 61) << 16);
}

class BandsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::vector<CheckpointTensor> tensors;
    for (uint32_t s = 0; s < 2; ++s) {
      CheckpointTensor tensor{s == 0 ? "a" : "b", "BF16", {source_rows, columns}, {}};
      tensor.bytes.resize(uint64_t{source_rows} * columns * 2);
      for (uint64_t i = 0; i < uint64_t{source_rows} * columns; ++i) {
        const uint16_t bits =
            static_cast<uint16_t>(std::bit_cast<uint32_t>(value(s, i / columns)) >> 16);
        std::memcpy(&tensor.bytes[i * 2], &bits, 2);
      }
      tensors.push_back(std::move(tensor));
    }
    write_safetensors(folder_.path() / "model.safetensors", tensors);
    auto opened = Checkpoint::open(folder_.path());
    ASSERT_TRUE(accepted(opened));
    checkpoint_ = std::make_unique<Checkpoint>(std::move(*opened));
  }

  BoundTensor joined(spec::Join join) const {
    const auto& tensors = checkpoint_->tensors();
    return {{"ab",
             spec::TensorClass::matrix,
             2 * source_rows,
             columns,
             join,
             {{"a", source_rows, columns}, {"b", source_rows, columns}}},
            {tensors.at("a"), tensors.at("b")},
            checkpoint_.get()};
  }

  TemporaryFolder folder_;
  std::unique_ptr<Checkpoint> checkpoint_;
};

TEST_F(BandsTest, RowsFollowTheJoin) {
  for (const spec::Join join : {spec::Join::concatenate, spec::Join::interleave}) {
    for (const unsigned threads : {1u, 3u}) {
      uint64_t row = 0;
      uint64_t bands = 0;
      const auto check = [&](const Band& band) -> Result<bool> {
        EXPECT_LE(band.values.size(), largest_band);
        for (size_t at = 0; at < band.values.size(); at += columns * 4, ++row) {
          const bool interleaved = join == spec::Join::interleave;
          const uint32_t source = static_cast<uint32_t>(interleaved ? row % 2 : row / source_rows);
          const float expected = value(source, interleaved ? row / 2 : row % source_rows);
          float ends[2];
          std::memcpy(&ends[0], &band.values[at], 4);
          std::memcpy(&ends[1], &band.values[at + (columns - 1) * 4], 4);
          if (ends[0] != expected || ends[1] != expected) {
            ADD_FAILURE() << "row " << row << ": " << ends[0] << " and " << ends[1] << ", expected "
                          << expected;
            return false;
          }
        }
        ++bands;
        return true;
      };
      EXPECT_TRUE(accepted(for_each_band(joined(join), spec::WeightType::f32, threads, check)));
      EXPECT_EQ(row, 2 * source_rows);
      EXPECT_GE(bands, 2u);
    }
  }
}

TEST_F(BandsTest, ScalesFollowTheRows) {
  std::vector<std::byte> values, scales;
  const auto append = [&](const Band& band) -> Result<bool> {
    values.insert(values.end(), band.values.begin(), band.values.end());
    scales.insert(scales.end(), band.scales.begin(), band.scales.end());
    return true;
  };
  const BoundTensor tensor = joined(spec::Join::concatenate);
  ASSERT_TRUE(accepted(for_each_band(tensor, spec::WeightType::q4_0, 2, append)));
  ASSERT_EQ(scales.size(), 2 * source_rows * 2);
  const std::vector<float> decoded = decode_row(spec::WeightType::q4_0, values, scales);
  for (uint64_t row = 0; row < 2 * source_rows; ++row) {
    const float expected = value(static_cast<uint32_t>(row / source_rows), row % source_rows);
    ASSERT_EQ(decoded[row * columns], expected) << row;
  }
}

TEST_F(BandsTest, StopsWhenToldSo) {
  uint64_t bands = 0;
  const auto stop = [&](const Band&) -> Result<bool> {
    ++bands;
    return false;
  };
  const BoundTensor tensor = joined(spec::Join::concatenate);
  EXPECT_TRUE(accepted(for_each_band(tensor, spec::WeightType::f32, 2, stop)));
  EXPECT_EQ(bands, 1u);
  const auto refuse = [](const Band&) -> Result<bool> {
    return tl::unexpected(Error{ErrorCode::io, "disk full"});
  };
  EXPECT_TRUE(refused(for_each_band(tensor, spec::WeightType::f32, 2, refuse), ErrorCode::io,
                      {"disk full"}));
}

}  // namespace
}  // namespace tandem::test
