// Reading: exact ranges, 64-bit offsets, bounds, and refusal of everything but regular files.
#include "base/files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <array>

#include "folder.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

class Files : public test::FolderTest {};

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST_F(Files, ReadsRangesAndWholeFiles) {
  put("a", "0123456789");
  const auto file = File::open(path("a"));
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->size(), 10u);
  std::array<std::byte, 4> bytes;
  ASSERT_TRUE(file->read(6, bytes));
  EXPECT_EQ(text_of(bytes), "6789");
  EXPECT_TRUE(file->read(10, {}));
  EXPECT_EQ(read_file(path("a"), 10).value_or(""), "0123456789");
}

TEST_F(Files, ShortReadsNameFileOffsetAndSize) {
  put("a", "0123456789");
  const auto file = File::open(path("a"));
  ASSERT_TRUE(file);
  std::array<std::byte, 4> bytes;
  for (const uint64_t offset : {uint64_t{7}, uint64_t{11}, ~uint64_t{0}, ~uint64_t{0} - 2}) {
    const auto result = file->read(offset, bytes);
    ASSERT_FALSE(result) << offset;
    EXPECT_EQ(result.error().code, ErrorCode::io);
    EXPECT_EQ(result.error().message,
              fmt::format("{}: expected 4 bytes from offset {}, but the file has only 10",
                          path("a").string(), offset));
  }
}

TEST_F(Files, AFileCutWhileItIsOpenIsAnError) {
  put("a", "0123456789");
  const auto file = File::open(path("a"));
  ASSERT_TRUE(file);
  fs::resize_file(path("a"), 8);
  std::array<std::byte, 4> bytes;
  const auto result = file->read(6, bytes);
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().message.find("cut to 8 bytes"), std::string::npos)
      << result.error().message;
}

TEST_F(Files, OffsetsBeyondFourGibibytes) {
  const uint64_t offset = (uint64_t{4} << 30) + 16;
  put("sparse", "");
  fs::resize_file(path("sparse"), offset);
  std::ofstream(path("sparse"), std::ios::binary | std::ios::app) << "behind";
  const auto file = File::open(path("sparse"));
  ASSERT_TRUE(file);
  EXPECT_EQ(file->size(), offset + 6);
  std::array<std::byte, 6> bytes;
  ASSERT_TRUE(file->read(offset, bytes));
  EXPECT_EQ(text_of(bytes), "behind");
}

TEST_F(Files, OnlyRegularFilesAreOpened) {
  put("file", "x");
  fs::create_directory(path("folder"));
  fs::create_symlink("file", path("link"));
  fs::create_symlink("nowhere", path("dangling"));
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  struct Case {
    std::string_view name;
    Links links;
    ErrorCode code;
  };
  const Case cases[] = {
      {"missing", Links::refuse, ErrorCode::not_found},
      {"file/below", Links::refuse, ErrorCode::not_found},
      {"folder", Links::refuse, ErrorCode::unsafe_path},
      {"pipe", Links::refuse, ErrorCode::unsafe_path},
      {"link", Links::refuse, ErrorCode::unsafe_path},
      {"dangling", Links::refuse, ErrorCode::unsafe_path},
      {"dangling", Links::follow, ErrorCode::not_found},
      {"folder", Links::follow, ErrorCode::unsafe_path},
  };
  for (const Case& c : cases) {
    const auto file = File::open(path(c.name), c.links);
    ASSERT_FALSE(file) << c.name;
    EXPECT_EQ(file.error().code, c.code) << file.error().message;
    EXPECT_NE(file.error().message.find(path(c.name).string()), std::string::npos)
        << file.error().message;
  }
  EXPECT_TRUE(File::open(path("link"), Links::follow));
}

TEST_F(Files, WholeFilesAreBounded) {
  put("a", "0123456789");
  const auto result = read_file(path("a"), 9);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::bad_value);
  put("empty", "");
  EXPECT_EQ(read_file(path("empty"), 0).value_or("?"), "");
}

TEST_F(Files, MovedFilesStayOpen) {
  put("a", "0123456789");
  put("b", "b");
  auto first = File::open(path("a"));
  auto second = File::open(path("b"));
  ASSERT_TRUE(first && second);
  File moved = std::move(*first);
  *second = std::move(moved);
  std::array<std::byte, 2> bytes;
  ASSERT_TRUE(second->read(8, bytes));
  EXPECT_EQ(text_of(bytes), "89");
}

TEST(Inside, TakesPlainNamesOnly) {
  EXPECT_EQ(inside("folder", "model-00001-of-00002.safetensors").value_or(""),
            fs::path("folder/model-00001-of-00002.safetensors"));
  EXPECT_EQ(inside("folder", "..hidden").value_or(""), fs::path("folder/..hidden"));
  for (const std::string_view name :
       {std::string_view(""), std::string_view("."), std::string_view(".."),
        std::string_view("../x"), std::string_view("a/b"), std::string_view("/etc/passwd"),
        std::string_view("a\\b"), std::string_view("a\0b", 3), std::string_view("a\n")}) {
    const auto result = inside("folder", name);
    ASSERT_FALSE(result) << name;
    EXPECT_EQ(result.error().code, ErrorCode::unsafe_path) << name;
  }
}

}  // namespace
}  // namespace tandem
