// Headers of GGUF files: what they say, and every way to be wrong refused.
#include "exporter/gguf.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "support/gguf.h"
#include "support/refusal.h"

namespace tandem::test {
namespace {

using exporter::Gguf;

template <class T>
std::string raw(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}

GgufContent small() {
  GgufContent content;
  content.metadata = {{"general.name", gguf_text("tiny")},
                      {"numbers", gguf_array({gguf_i32(-1), gguf_i32(2)})},
                      {"epsilon", gguf_f32(1e-6f)},
                      {"flag", gguf_bool(true)}};
  content.tensors = {{"a", 0, {2, 3}, std::string(24, 'a')},
                     {"b", 2, {1, 32}, std::string(18, 'b')},
                     {"c", 1, {5}, std::string(10, 'c')}};
  return content;
}

Result<Gguf> read(const std::string& bytes) {
  return exporter::read_gguf(std::as_bytes(std::span(bytes)), "model.gguf");
}

TEST(Gguf, SaysWhatTheFileHolds) {
  for (const uint64_t alignment : {32, 8, 64}) {
    GgufContent content = small();
    content.alignment = alignment;
    if (alignment != 32)
      content.value("general.alignment") = gguf_u32(static_cast<uint32_t>(alignment));
    const std::string bytes = write_gguf(content);
    const auto gguf = read(bytes);
    ASSERT_TRUE(accepted(gguf));
    EXPECT_EQ(gguf->metadata["general.name"], "tiny");
    EXPECT_EQ(gguf->metadata["numbers"], (Json{-1, 2}));
    EXPECT_EQ(gguf->metadata["epsilon"], 1e-6);  // not the double next to the f32
    EXPECT_EQ(gguf->metadata["flag"], true);
    ASSERT_EQ(gguf->tensors.size(), 3u);
    for (size_t i = 0; i < 3; ++i) {
      const exporter::GgufTensor& tensor = gguf->tensors[i];
      EXPECT_EQ(tensor.name, content.tensors[i].name);
      EXPECT_EQ(tensor.shape, content.tensors[i].shape);
      EXPECT_EQ(tensor.offset % alignment, 0u);
      EXPECT_EQ(bytes.substr(tensor.offset, tensor.bytes), content.tensors[i].bytes);
    }
    EXPECT_EQ(gguf->tensors[0].type, "F32");
    EXPECT_EQ(gguf->tensors[1].type, "Q4_0");
  }
}

TEST(Gguf, FileAndSpanGiveTheSame) {
  TemporaryFolder folder;
  GgufContent content = small();
  content.metadata.emplace_back("long", gguf_text(std::string(3'000'000, 'x')));  // beyond a buffer
  content.metadata.emplace_back("after", gguf_u32(7));
  const std::string bytes = write_gguf(content);
  write_file(folder.path() / "model.gguf", bytes);
  const auto file = File::open(folder.path() / "model.gguf");
  ASSERT_TRUE(accepted(file));
  const auto from_file = exporter::read_gguf(*file);
  ASSERT_TRUE(accepted(from_file));
  EXPECT_EQ(from_file->metadata, read(bytes)->metadata);
  EXPECT_EQ(from_file->metadata["after"], 7);
}

TEST(Gguf, VersionsAndOtherFiles) {
  std::string bytes = write_gguf(small());
  const auto with_version = [&](uint32_t version) { return bytes.replace(4, 4, raw(version)); };
  EXPECT_TRUE(accepted(read(with_version(2))));
  EXPECT_TRUE(refused(read(with_version(1)), ErrorCode::unsupported, {"model.gguf", "found 1"}));
  EXPECT_TRUE(refused(read(with_version(4)), ErrorCode::unsupported, {"found 4"}));
  EXPECT_TRUE(refused(read(with_version(0x03000000)), ErrorCode::unsupported, {"big-endian"}));
  bytes[0] = 'g';
  EXPECT_TRUE(refused(read(bytes), ErrorCode::malformed_checkpoint, {"GGUF"}));
}

// Only the padding behind the last tensor may be missing.
TEST(Gguf, CutAnywhere) {
  const std::string bytes = write_gguf(small());
  const size_t padding = 32 - 10;
  for (size_t size = 0; size < bytes.size() - padding; ++size) {
    ASSERT_TRUE(refused(read(bytes.substr(0, size)), ErrorCode::malformed_checkpoint)) << size;
  }
  for (size_t size = bytes.size() - padding; size <= bytes.size(); ++size) {
    ASSERT_TRUE(accepted(read(bytes.substr(0, size)))) << size;
  }
  EXPECT_TRUE(refused(read(bytes + "x"), ErrorCode::malformed_checkpoint, {"trail", "c"}));
}

// Every field of 8 bytes that counts, in turn: small() has them where write_gguf puts them.
TEST(Gguf, CountsBeyondTheFile) {
  const std::string bytes = write_gguf(small());
  const auto field = [&](std::string_view before) { return bytes.find(before) + before.size(); };
  const std::pair<const char*, size_t> counts[] = {
      {"tensors", 8},
      {"keys", 16},
      {"key's length", 24},
      {"text's length", field("general.name") + 4},
      {"array's length", field("numbers") + 8},
      {"tensor's name", field("flag") + 5},
      {"extent", field("a\x02\0\0\0")},
  };
  for (const auto& [what, at] : counts) {
    for (const uint64_t count : {uint64_t{1} << 20, uint64_t{1} << 40, ~uint64_t{0}}) {
      std::string damaged = bytes;
      damaged.replace(at, 8, raw(count));
      EXPECT_TRUE(refused(read(damaged), ErrorCode::malformed_checkpoint)) << what << " " << count;
    }
  }
}

struct HeaderCase {
  const char* why;
  std::function<void(GgufContent&)> damage;
  std::initializer_list<std::string_view> words;
};

TEST(Gguf, ContentsThatAreWrong) {
  const auto value = [](const char* key, std::string bytes) {
    return [=](GgufContent& content) { content.value(key) = bytes; };
  };
  const auto nested = [](uint32_t depth) {
    std::string bytes = gguf_array({gguf_u32(1)});
    for (uint32_t i = 1; i < depth; ++i) bytes = gguf_array({bytes});
    return bytes;
  };
  const HeaderCase cases[] = {
      {"key twice",
       [](GgufContent& c) { c.metadata.push_back(c.metadata.front()); },
       {"general.name", "twice"}},
      {"key without a name", value("", gguf_u32(1)), {"key 4", "no name"}},
      {"key that is not UTF-8", value("\xFF", gguf_u32(1)), {"key 4", "UTF-8"}},
      {"text that is not UTF-8", value("k", gguf_text("\xC3")), {"k", "UTF-8"}},
      {"unknown type", value("k", raw(uint32_t{13}) + raw(uint64_t{0})), {"k", "type 13"}},
      {"array of an unknown type",
       value("k", raw(uint32_t{9}) + raw(uint32_t{99}) + raw(uint64_t{0})),
       {"k", "type 99"}},
      {"bool of 2", value("k", raw(uint32_t{7}) + raw(uint8_t{2})), {"k", "found 2"}},
      {"arrays too deep", value("k", nested(5)), {"k", "deep"}},
      {"alignment 0", value("general.alignment", gguf_u32(0)), {"alignment", "found 0"}},
      {"alignment 24", value("general.alignment", gguf_u32(24)), {"alignment", "found 24"}},
      {"alignment of text", value("general.alignment", gguf_text("32")), {"alignment", "\"32\""}},
      {"alignment that the data do not have",
       value("general.alignment", gguf_u32(64)),
       {"tensor b", "byte 64 is next"}},
      {"tensor twice", [](GgufContent& c) { c.tensors[1].name = "a"; }, {"tensor a", "twice"}},
      {"tensor without a name", [](GgufContent& c) { c.tensors[1].name = ""; }, {"tensor 1"}},
      {"name that is not UTF-8",
       [](GgufContent& c) { c.tensors[1].name = "\xFF"; },
       {"tensor 1", "UTF-8"}},
      {"no dimensions", [](GgufContent& c) { c.tensors[2].shape = {}; }, {"tensor c", "found 0"}},
      {"five dimensions",
       [](GgufContent& c) {
         c.tensors[2].shape = {1, 1, 1, 1, 5};
       },
       {"tensor c", "found 5"}},
      {"no values",
       [](GgufContent& c) {
         c.tensors[0].shape = {0, 3};
       },
       {"tensor a", "no values"}},
      {"size that overflows",
       [](GgufContent& c) {
         c.tensors[0].shape = {1ull << 40, 1ull << 40};
       },
       {"tensor a", "larger"}},
      {"part of a block",
       [](GgufContent& c) {
         c.tensors[1].shape = {1, 33};
       },
       {"tensor b", "33", "Q4_0"}},
      {"unknown tensor type",
       [](GgufContent& c) { c.tensors[1].type = 4; },
       {"tensor b", "type 4"}},
      {"hole",
       [](GgufContent& c) { c.tensors[0].bytes.resize(64); },
       {"tensor b", "hole", "byte 32 is next"}},
      {"overlap",
       [](GgufContent& c) {
         c.tensors[0].shape = {5, 3};
       },
       {"tensor b", "inside a"}},
      {"more data than the file",
       [](GgufContent& c) { c.tensors[2].shape = {500}; },
       {"tensor c", "truncated"}},
  };
  for (const HeaderCase& test : cases) {
    GgufContent content = small();
    test.damage(content);
    EXPECT_TRUE(refused(read(write_gguf(content)), ErrorCode::malformed_checkpoint, test.words))
        << test.why;
  }
  GgufContent content = small();
  content.value("k") = nested(4);
  EXPECT_TRUE(accepted(read(write_gguf(content))));
}

// No byte of a header, whatever it becomes, makes the reader fail in another way than by an error.
TEST(Gguf, DamagedBytes) {
  const std::string bytes = write_gguf(small());
  const size_t header = bytes.find(std::string(24, 'a'));
  size_t refusals = 0;
  for (size_t at = 0; at < header; ++at) {
    for (const int change : {1, 0x80, 0xFF}) {
      std::string damaged = bytes;
      damaged[at] = static_cast<char>(damaged[at] ^ change);
      refusals += !read(damaged);
    }
  }
  EXPECT_GT(refusals, header);
}

}  // namespace
}  // namespace tandem::test
