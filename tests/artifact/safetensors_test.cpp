// Making safetensors; reading what is damaged is tested with checkpoints, in
// tests/exporter.
#include "artifact/safetensors.h"

#include <gtest/gtest.h>

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

TEST(Safetensors, HeadersReadBack) {
  TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "logits.safetensors";
  std::vector<SafetensorsEntry> made = {{"logits", "F32", {2, 3}, 0, 24},
                                        {"scale", "F32", {}, 0, 4}};
  const std::string header = artifact::make_safetensors_header(made);
  write_file(path, header + std::string(28, 'x'));
  const auto file = File::open(path);
  ASSERT_TRUE(accepted(file));
  const auto entries = artifact::read_safetensors_header(*file);
  ASSERT_TRUE(accepted(entries));
  ASSERT_EQ(entries->size(), made.size());
  for (size_t i = 0; i < made.size(); ++i) {
    const SafetensorsEntry& entry = (*entries)[i];
    EXPECT_EQ(entry.name, made[i].name);
    EXPECT_EQ(entry.dtype, made[i].dtype);
    EXPECT_EQ(entry.shape, made[i].shape);
    EXPECT_EQ(entry.offset, made[i].offset);
    EXPECT_EQ(entry.bytes, made[i].bytes);
  }
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
