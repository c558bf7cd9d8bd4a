// Making and writing safetensors; reading what is damaged is tested with checkpoints, in
// tests/exporter.
#include "artifact/safetensors.h"

#include <gtest/gtest.h>

#include <array>
#include <nlohmann/json.hpp>

#include "artifact/shard_layout.h"
#include "support/checkpoint.h"
#include "support/refusal.h"

namespace tandem::test {
namespace {

using artifact::SafetensorsEntry;

TEST(Safetensors, DataBeginAtAMultipleOf16) {
  for (size_t length = 1; length <= 40; ++length) {
    SafetensorsEntry entries[] = {{std::string(length, 'n'), "F32", {3}, 0, 12},
                                  {"b", "U8", {5}, 0, 5}};
    const std::string header = artifact::make_safetensors_header(entries);
    EXPECT_EQ(header.size() % 16, 0u);
    EXPECT_EQ(entries[0].offset, header.size());
    EXPECT_EQ(entries[1].offset, header.size() + 12);
  }
}

TEST(Safetensors, WrittenFilesReadBack) {
  TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "logits.safetensors";
  const std::array<float, 6> values = {1, -2, 3.5f, 0, 1e30f, -1e-30f};
  const std::array<float, 1> scalar = {7};
  const artifact::F32Tensor tensors[] = {{"logits", {2, 3}, values}, {"scale", {}, scalar}};
  ASSERT_TRUE(accepted(artifact::write_safetensors(path, tensors)));
  const auto file = File::open(path);
  ASSERT_TRUE(accepted(file));
  const auto entries = artifact::read_safetensors_header(*file);
  ASSERT_TRUE(accepted(entries));
  ASSERT_EQ(entries->size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    const SafetensorsEntry& entry = (*entries)[i];
    EXPECT_EQ(entry.name, tensors[i].name);
    EXPECT_EQ(entry.dtype, "F32");
    EXPECT_EQ(entry.shape, tensors[i].shape);
    std::vector<float> found(entry.bytes / 4);
    ASSERT_TRUE(accepted(file->read(entry.offset, std::as_writable_bytes(std::span(found)))));
    EXPECT_TRUE(
        std::equal(found.begin(), found.end(), tensors[i].values.begin(), tensors[i].values.end()));
  }
}

TEST(Safetensors, WritingIsRefused) {
  TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "out.safetensors";
  const std::array<float, 6> values = {};
  const artifact::F32Tensor wrong[] = {{"logits", {2, 4}, values}};
  EXPECT_TRUE(refused(artifact::write_safetensors(path, wrong), ErrorCode::invalid_argument,
                      {"logits", "2, 4"}));
  EXPECT_FALSE(std::filesystem::exists(path));
  write_file(path, "mine");
  const artifact::F32Tensor right[] = {{"logits", {2, 3}, values}};
  EXPECT_TRUE(refused(artifact::write_safetensors(path, right), ErrorCode::already_exists,
                      {"out.safetensors"}));
  EXPECT_EQ(read_file(path), "mine");
}

TEST(ShardLayout, PlanesAreAlignedAndTheRestIsPadding) {
  const artifact::ShardLayout layout =
      artifact::lay_out_shard({{"a.values", "F32", {1, 1}, 0, 4},
                               {"b.quants", "U8", {2, 16}, 0, 32},
                               {"b.scales", "F16", {2, 1}, 0, 4},
                               {"c.values", "F32", {1, 4}, 0, 16}});
  std::vector<std::string> names;
  uint64_t end = layout.header.size();
  for (const SafetensorsEntry& entry : layout.entries) {
    EXPECT_EQ(entry.offset, end) << entry.name;
    end += entry.bytes;
    names.push_back(entry.name);
    EXPECT_TRUE(artifact::is_padding(entry) || entry.offset % 16 == 0) << entry.name;
  }
  EXPECT_EQ(end, layout.bytes);
  EXPECT_EQ(names, (std::vector<std::string>{"a.values", "padding.0", "b.quants", "b.scales",
                                             "padding.1", "c.values"}));
}

}  // namespace
}  // namespace tandem::test
