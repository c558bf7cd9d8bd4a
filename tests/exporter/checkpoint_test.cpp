// Checkpoint folders as they are found in the wild: what is damaged is refused, by the names of
// shard and tensor.
#include "exporter/checkpoint.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "base/half.h"
#include "support/checkpoint.h"
#include "support/refusal.h"

namespace tandem::test {
namespace {

namespace fs = std::filesystem;
using exporter::Checkpoint;

std::string file_with_header(const std::string& header, size_t data_bytes, uint64_t stated_length) {
  return std::string(reinterpret_cast<const char*>(&stated_length), 8) + header +
         std::string(data_bytes, 'x');
}
std::string file_with_header(const std::string& header, size_t data_bytes) {
  return file_with_header(header, data_bytes, header.size());
}

struct HeaderCase {
  const char* why;
  const char* header;
  size_t data_bytes;
  ErrorCode code;
  std::vector<std::string> words;
};

TEST(Checkpoint, HeadersThatAreWrong) {
  const ErrorCode damaged = ErrorCode::malformed_checkpoint;
  const HeaderCase cases[] = {
      {"not JSON", "{", 0, ErrorCode::malformed_json, {}},
      {"not an object", "[]", 0, ErrorCode::wrong_type, {}},
      {"the same tensor twice",
       R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
       2,
       ErrorCode::malformed_json,
       {"a"}},
      {"unknown key",
       R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"x":1}})",
       1,
       ErrorCode::unknown_key,
       {"x"}},
      {"no dtype",
       R"({"a":{"shape":[1],"data_offsets":[0,1]}})",
       1,
       ErrorCode::missing_key,
       {"dtype"}},
      {"no shape",
       R"({"a":{"dtype":"U8","data_offsets":[0,1]}})",
       1,
       ErrorCode::missing_key,
       {"shape"}},
      {"no offsets",
       R"({"a":{"dtype":"U8","shape":[1]}})",
       1,
       ErrorCode::missing_key,
       {"data_offsets"}},
      {"shape of text",
       R"({"a":{"dtype":"U8","shape":["1"],"data_offsets":[0,1]}})",
       1,
       ErrorCode::wrong_type,
       {"shape"}},
      {"negative extent",
       R"({"a":{"dtype":"U8","shape":[-1],"data_offsets":[0,1]}})",
       1,
       ErrorCode::wrong_type,
       {"shape"}},
      {"unknown dtype",
       R"({"a":{"dtype":"Q4","shape":[1],"data_offsets":[0,1]}})",
       1,
       damaged,
       {"tensor a", "Q4"}},
      {"three offsets",
       R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1,1]}})",
       1,
       damaged,
       {"tensor a"}},
      {"offsets the wrong way round",
       R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[1,0]}})",
       1,
       damaged,
       {"tensor a"}},
      {"shape too small",
       R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,12]}})",
       12,
       damaged,
       {"tensor a", "12"}},
      {"shape that overflows",
       R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}})",
       0,
       damaged,
       {"tensor a"}},
      {"past the end",
       R"({"a":{"dtype":"U8","shape":[5],"data_offsets":[0,5]}})",
       4,
       damaged,
       {"tensor a", "truncated"}},
      {"far past the end",
       R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[18446744073709551614,18446744073709551615]}})",
       4,
       damaged,
       {"tensor a", "truncated"}},
      {"overlap",
       R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},"b":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}})",
       4,
       damaged,
       {"tensor b", "inside a"}},
      {"hole",
       R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}})",
       4,
       damaged,
       {"tensor b", "hole after a"}},
      {"hole in front",
       R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
       2,
       damaged,
       {"tensor a", "the header"}},
      {"trailing bytes",
       R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
       4,
       damaged,
       {"3 bytes trail", "a"}},
  };
  for (const HeaderCase& c : cases) {
    TemporaryFolder folder;
    write_file(folder.path() / "model.safetensors", file_with_header(c.header, c.data_bytes));
    const auto result = Checkpoint::open(folder.path());
    EXPECT_TRUE(refused(result, c.code)) << c.why;
    for (const std::string& word : c.words) EXPECT_TRUE(refused(result, c.code, {word})) << c.why;
  }
}

TEST(Checkpoint, HeaderLengthsThatAreWrong) {
  const std::string header = R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})";
  for (const uint64_t length : {uint64_t{0}, uint64_t{1}, header.size() - 1, header.size() + 2,
                                uint64_t{100'000'001}, std::numeric_limits<uint64_t>::max()}) {
    TemporaryFolder folder;
    write_file(folder.path() / "model.safetensors", file_with_header(header, 1, length));
    EXPECT_FALSE(Checkpoint::open(folder.path())) << length;
  }
  TemporaryFolder folder;
  write_file(folder.path() / "model.safetensors", "short");
  EXPECT_TRUE(
      refused(Checkpoint::open(folder.path()), ErrorCode::malformed_checkpoint, {"5 bytes"}));
}

TEST(Checkpoint, HeadersThatAreRight) {
  for (
      const char* header :
      {"{}", "{}   ", R"({"__metadata__":{"format":"pt"}})",
       R"({"b":{"dtype":"I64","shape":[],"data_offsets":[0,8]},"a":{"dtype":"F8_E4M3","shape":[2,0],"data_offsets":[8,8]}})"}) {
    TemporaryFolder folder;
    write_file(
        folder.path() / "model.safetensors",
        file_with_header(header, std::string(header).find("I64") == std::string::npos ? 0 : 8));
    EXPECT_TRUE(accepted(Checkpoint::open(folder.path()))) << header;
  }
}

// Shards of a sharded checkpoint, and the index.
constexpr const char* first_shard = "model-00001-of-00003.safetensors";
constexpr const char* second_shard = "model-00002-of-00003.safetensors";
constexpr const char* index_json = "model.safetensors.index.json";

std::vector<CheckpointTensor> six_tensors() {
  std::vector<CheckpointTensor> tensors;
  for (const char* name : {"a", "b", "c", "d", "e", "f"}) {
    tensors.push_back({name, "U8", {4}, std::vector<std::byte>(4, std::byte(name[0]))});
  }
  return tensors;
}

void change_index(const fs::path& folder, const std::function<void(nlohmann::json&)>& change) {
  nlohmann::json index = nlohmann::json::parse(read_file(folder / index_json));
  change(index);
  write_file(folder / index_json, index.dump());
}

struct ShardCase {
  const char* why;
  std::function<void(const fs::path&)> damage;
  ErrorCode code;
  std::vector<std::string> words;
};

TEST(Checkpoint, ShardsThatAreDamagedGetDistinctRefusals) {
  const ErrorCode damaged = ErrorCode::malformed_checkpoint;
  const ShardCase cases[] = {
      {"missing shard",
       [](const fs::path& f) { fs::remove(f / second_shard); },
       ErrorCode::not_found,
       {second_shard, "tensor c", "missing"}},
      {"stray shard",
       [](const fs::path& f) {
         write_safetensors(f / "other.safetensors", {{"z", "U8", {1}, {std::byte{1}}}});
       },
       damaged,
       {"stray shard other.safetensors"}},
      {"tensor in the wrong shard",
       [](const fs::path& f) {
         change_index(f, [](auto& index) { index["weight_map"]["a"] = second_shard; });
       },
       damaged,
       {first_shard, "tensor a", "belongs to the shard", second_shard}},
      {"trailing bytes",
       [](const fs::path& f) { write_file(f / second_shard, read_file(f / second_shard) + "xyz"); },
       damaged,
       {second_shard, "3 bytes trail"}},
      {"truncated shard",
       [](const fs::path& f) {
         const std::string bytes = read_file(f / second_shard);
         write_file(f / second_shard, bytes.substr(0, bytes.size() - 1));
       },
       damaged,
       {second_shard, "tensor d", "truncated"}},
      {"tensor that the index does not name",
       [](const fs::path& f) {
         change_index(f, [](auto& index) { index["weight_map"].erase("b"); });
       },
       damaged,
       {first_shard, "tensor b is not in"}},
      {"tensor that the shard lacks",
       [](const fs::path& f) {
         change_index(f, [](auto& index) { index["weight_map"]["y"] = first_shard; });
       },
       damaged,
       {first_shard, "tensor y is missing"}},
      {"index with an unknown key",
       [](const fs::path& f) { change_index(f, [](auto& index) { index["x"] = 1; }); },
       ErrorCode::unknown_key,
       {"x"}},
      {"index without a map",
       [](const fs::path& f) { change_index(f, [](auto& index) { index.erase("weight_map"); }); },
       ErrorCode::missing_key,
       {"weight_map"}},
      {"index that leaves the folder",
       [](const fs::path& f) {
         change_index(f, [](auto& index) { index["weight_map"]["a"] = "../a.safetensors"; });
       },
       ErrorCode::unsafe_path,
       {"../a.safetensors"}},
      {"index and a single file",
       [](const fs::path& f) { write_safetensors(f / "model.safetensors", six_tensors()); },
       damaged,
       {"stray shard model.safetensors"}},
  };
  std::set<std::string> messages;
  for (const ShardCase& c : cases) {
    TemporaryFolder folder;
    write_checkpoint(folder.path(), "{}", six_tensors(), 3);
    ASSERT_TRUE(accepted(Checkpoint::open(folder.path())));
    c.damage(folder.path());
    const auto result = Checkpoint::open(folder.path());
    EXPECT_TRUE(refused(result, c.code)) << c.why;
    for (const std::string& word : c.words) EXPECT_TRUE(refused(result, c.code, {word})) << c.why;
    // Without the folder's random name.
    if (!result) {
      std::string message = result.error().message;
      if (const size_t at = message.find(folder.path().string()); at != std::string::npos) {
        message.erase(at, folder.path().string().size());
      }
      EXPECT_TRUE(messages.insert(message).second) << message;
    }
  }
}

TEST(Checkpoint, AFolderWithoutWeights) {
  TemporaryFolder folder;
  EXPECT_TRUE(
      refused(Checkpoint::open(folder.path()), ErrorCode::not_found, {"model.safetensors"}));
  EXPECT_TRUE(
      refused(Checkpoint::open(folder.path() / "no"), ErrorCode::not_found, {"model.safetensors"}));
}

TEST(Checkpoint, LinksOfACacheAreFollowed) {
  TemporaryFolder folder;
  fs::create_directory(folder.path() / "blobs");
  fs::create_directory(folder.path() / "snapshot");
  write_safetensors(folder.path() / "blobs" / "0123", six_tensors());
  fs::create_symlink("../blobs/0123", folder.path() / "snapshot" / "model.safetensors");
  const auto checkpoint = Checkpoint::open(folder.path() / "snapshot");
  ASSERT_TRUE(accepted(checkpoint));
  EXPECT_EQ(checkpoint->tensors().size(), 6u);
}

TEST(Checkpoint, ShardsAreReadAsOne) {
  TemporaryFolder folder;
  write_checkpoint(folder.path(), "{}", six_tensors(), 3);
  const auto checkpoint = Checkpoint::open(folder.path());
  ASSERT_TRUE(accepted(checkpoint));
  EXPECT_EQ(checkpoint->files().size(), 3u);
  for (const CheckpointTensor& expected : six_tensors()) {
    const auto& tensor = checkpoint->tensors().at(expected.name);
    std::vector<std::byte> bytes(4);
    ASSERT_TRUE(accepted(checkpoint->read(tensor, 0, bytes)));
    EXPECT_EQ(bytes, expected.bytes) << expected.name;
  }
}

// A file of more than 4 GiB, all but its ends a hole.
TEST(Checkpoint, OffsetsHave64Bits) {
  TemporaryFolder folder;
  const uint64_t far = (uint64_t{4} << 30) + 16;
  const std::string header = fmt::format(
      R"({{"big":{{"dtype":"U8","shape":[{0}],"data_offsets":[0,{0}]}},"last":{{"dtype":"F32","shape":[2],"data_offsets":[{0},{1}]}}}})",
      far, far + 8);
  const fs::path path = folder.path() / "model.safetensors";
  write_file(path, file_with_header(header, 0));
  const float values[] = {1.5f, -2.5f};
  const int descriptor = open(path.c_str(), O_WRONLY);
  ASSERT_EQ(pwrite(descriptor, values, 8, static_cast<off_t>(8 + header.size() + far)), 8);
  close(descriptor);
  const auto checkpoint = Checkpoint::open(folder.path());
  ASSERT_TRUE(accepted(checkpoint));
  float found[2] = {};
  ASSERT_TRUE(accepted(checkpoint->read(checkpoint->tensors().at("last"), 0,
                                        std::as_writable_bytes(std::span(found)))));
  EXPECT_EQ(found[0], 1.5f);
  EXPECT_EQ(found[1], -2.5f);
}

TEST(Checkpoint, WideningIsExact) {
  const uint16_t halves[] = {to_half(1.5f), to_half(-0x1p-20f), 0x7bff};
  const uint16_t brains[] = {0x3fc0, 0xff7f, 0x0001};
  const float singles[] = {1e-42f, -3e38f, 0.1f};
  float values[3];
  exporter::widen("F16", reinterpret_cast<const std::byte*>(halves), values);
  EXPECT_EQ(values[0], 1.5f);
  EXPECT_EQ(values[1], -0x1p-20f);
  EXPECT_EQ(values[2], 65504.0f);
  exporter::widen("BF16", reinterpret_cast<const std::byte*>(brains), values);
  EXPECT_EQ(values[0], 1.5f);
  EXPECT_EQ(values[1], -0x1.fep127f);
  EXPECT_EQ(values[2], 0x1p-133f);
  exporter::widen("F32", reinterpret_cast<const std::byte*>(singles), values);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(values[i], singles[i]);
}

}  // namespace
}  // namespace tandem::test
