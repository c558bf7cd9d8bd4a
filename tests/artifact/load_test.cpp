// Delivery of weights: every plane whole, nothing that is not verified.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "artifact/artifact.h"
#include "artifact/shard_layout.h"
#include "artifact/verify.h"
#include "fixture.h"

namespace tandem::test {
namespace {

namespace fs = std::filesystem;
using artifact::Artifact;
using artifact::Piece;

// Keeps what it gets; refuses the call with the number `refuse_at`.
class Recorder : public artifact::WeightSink {
 public:
  explicit Recorder(size_t refuse_at = SIZE_MAX) : refuse_at_(refuse_at) {}
  Result<void> write(std::string_view plane, uint64_t offset,
                     std::span<const std::byte> bytes) override {
    EXPECT_EQ(offset % 16, 0u);
    if (calls++ == refuse_at_) return tl::unexpected(Error{ErrorCode::out_of_memory, "full"});
    std::string& stored = planes[std::string(plane)];
    EXPECT_EQ(stored.size(), offset) << plane;
    stored.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return {};
  }
  size_t calls = 0;
  std::map<std::string, std::string> planes;

 private:
  size_t refuse_at_;
};

class LoadTest : public ArtifactTest {};

TEST_F(LoadTest, EveryPlaneArrivesWhole) {
  for (const bool large : {false, true}) {
    const auto opened = Artifact::open(exported(large));
    ASSERT_TRUE(accepted(opened));
    std::map<std::string, std::string> expected;
    for (const auto& tensor : opened->manifest().tensors) {
      const auto layouts = spec::planes(tensor.type, tensor.columns);
      for (size_t i = 0; i < layouts.size(); ++i) {
        const artifact::Plane& plane = tensor.planes[i];
        const std::string file =
            read_file(exported(large) / opened->manifest().shards[plane.shard].file);
        expected[tensor.name + "." + plane.name] =
            file.substr(plane.offset, layouts[i].bytes_per_row * tensor.rows);
      }
    }
    for (const unsigned threads : {0u, 1u, 2u, 3u, 4u}) {
      Recorder sink;
      uint64_t last = 0;
      const auto progress = [&](uint64_t done, uint64_t total) {
        EXPECT_GT(done, last);
        EXPECT_EQ(total, opened->plan().bytes);
        last = done;
      };
      ASSERT_TRUE(accepted(artifact::load(*opened, sink, progress, threads)));
      EXPECT_EQ(last, opened->plan().bytes);
      EXPECT_TRUE(sink.planes == expected) << threads;
    }
  }
}

TEST_F(LoadTest, PlanesGoOnFromPieceToPiece) {
  const auto opened = Artifact::open(exported(true));
  ASSERT_TRUE(accepted(opened));
  const std::vector<Piece>& pieces = opened->plan().pieces;
  ASSERT_GE(pieces.size(), 3u);
  uint64_t offset = 0;
  for (const Piece& piece : pieces) {
    EXPECT_EQ(piece.offset, offset);
    offset += piece.bytes;
    EXPECT_TRUE(piece.bytes == artifact::piece_bytes || &piece == &pieces.back());
  }
  EXPECT_EQ(pieces[1].segments.front().plane, pieces[0].segments.back().plane);
  EXPECT_GT(pieces[1].segments.front().plane_offset, 0u);
}

TEST_F(LoadTest, ShardsAreSafetensorsFiles) {
  for (const bool large : {false, true}) {
    const auto opened = Artifact::open(exported(large));
    ASSERT_TRUE(accepted(opened));
    std::set<std::string> planes;
    for (const auto& shard : opened->manifest().shards) {
      const auto file = File::open(exported(large) / shard.file);
      ASSERT_TRUE(accepted(file));
      const auto entries = artifact::read_safetensors_header(*file);
      ASSERT_TRUE(accepted(entries));
      for (const auto& entry : *entries) {
        if (!artifact::is_padding(entry)) planes.insert(entry.name);
      }
    }
    EXPECT_TRUE(planes.contains("layers.1.qkv.quants"));
    EXPECT_TRUE(planes.contains("layers.1.qkv.scales"));
    EXPECT_TRUE(planes.contains("final_norm.values"));
  }
}

void overwrite(const fs::path& path, uint64_t begin, uint64_t end, char value) {
  std::string bytes = read_file(path);
  std::fill(bytes.begin() + static_cast<ptrdiff_t>(begin),
            bytes.begin() + static_cast<ptrdiff_t>(end), value);
  write_file(path, bytes);
}

// An artifact whose hashes are all right.
TEST_F(LoadTest, NumbersThatAreNotFiniteAreRefused) {
  const auto pristine = Artifact::open(exported(false));
  ASSERT_TRUE(accepted(pristine));
  const artifact::Manifest& manifest = pristine->manifest();
  for (const auto& [tensor_name, dtype] :
       {std::pair("embedding", "F16"), std::pair("layers.1.down", "F16"),
        std::pair("final_norm", "F32")}) {
    const auto tensor = std::find_if(manifest.tensors.begin(), manifest.tensors.end(),
                                     [&](const auto& t) { return t.name == tensor_name; });
    ASSERT_NE(tensor, manifest.tensors.end());
    const artifact::Plane& plane = tensor->planes.back();
    const bool half = std::string_view(dtype) == "F16";
    struct Case {
      uint32_t bits;
      bool finite;
    };
    for (const Case& c :
         half ? std::vector<Case>{{0x7bff, true}, {0x7c00, false}, {0xfc00, false}, {0x7e01, false}}
              : std::vector<Case>{{0x7f7fffff, true},
                                  {0x7f800000, false},
                                  {0xff800000, false},
                                  {0x7fc00000, false},
                                  {0xff800001, false}}) {
      for (const size_t index : {0, 1, 17}) {
        const fs::path folder = copy();
        const fs::path file = folder / manifest.shards[plane.shard].file;
        std::string bytes = read_file(file);
        const size_t size = half ? 2 : 4;
        std::memcpy(&bytes[plane.offset + index * size], &c.bits, size);
        write_file(file, bytes);
        sign(folder, manifest, pristine->receipt());
        const auto verified = artifact::verify(folder);
        if (c.finite) {
          EXPECT_TRUE(accepted(verified)) << tensor_name;
          continue;
        }
        EXPECT_TRUE(refused(
            verified, ErrorCode::malformed_artifact,
            {file.filename().string(), fmt::format("{}.{}[{}]", tensor_name, plane.name, index),
             "expected a finite number"}));
      }
    }
  }
}

// Every piece in turn is zeros, in a file of the right length.
TEST_F(LoadTest, AZeroFilledPieceNeverReachesTheSink) {
  const size_t pieces = Artifact::open(exported(true))->plan().pieces.size();
  for (size_t index = 0; index < pieces; ++index) {
    const fs::path folder = copy(true);
    const auto pristine = Artifact::open(folder);
    ASSERT_TRUE(accepted(pristine));
    const Piece& piece = pristine->plan().pieces[index];
    const std::string& file = pristine->manifest().shards[piece.shard].file;
    // The header of the first piece is checked earlier.
    const uint64_t begin = index == 0 ? pristine->plan().shard_headers[0].size() : piece.offset;
    overwrite(folder / file, begin, piece.offset + piece.bytes, '\0');
    const auto opened = Artifact::open(folder);
    ASSERT_TRUE(accepted(opened));
    Recorder sink;
    const auto result = artifact::load(*opened, sink, {}, 2);
    EXPECT_TRUE(refused(result, ErrorCode::hash_mismatch,
                        {file, "piece " + std::to_string(index) + ":", piece.sha256.hex()}));
    size_t calls = 0;
    for (size_t before = 0; before < index; ++before)
      calls += opened->plan().pieces[before].segments.size();
    EXPECT_EQ(sink.calls, calls);
    EXPECT_TRUE(refused(artifact::verify(folder), ErrorCode::hash_mismatch, {file}));
  }
}

TEST_F(LoadTest, AZeroFilledShardIsRefusedAtOpen) {
  const fs::path folder = copy();
  const std::string file = Artifact::open(folder)->manifest().shards[1].file;
  overwrite(folder / file, 0, fs::file_size(folder / file), '\0');
  EXPECT_TRUE(refused(Artifact::open(folder), ErrorCode::malformed_artifact, {file, "header"}));
}

TEST_F(LoadTest, TheSinksErrorEndsTheLoad) {
  const auto opened = Artifact::open(exported(false));
  ASSERT_TRUE(accepted(opened));
  for (const size_t call : {0, 1, 7}) {
    Recorder sink(call);
    EXPECT_TRUE(refused(artifact::load(*opened, sink), ErrorCode::out_of_memory, {"full"}));
    EXPECT_EQ(sink.calls, call + 1);
  }
}

TEST_F(LoadTest, AShardThatChangesAfterOpenIsRefused) {
  const fs::path folder = copy();
  const auto opened = Artifact::open(folder);
  ASSERT_TRUE(accepted(opened));
  const std::string file = opened->manifest().shards[0].file;
  fs::resize_file(folder / file, fs::file_size(folder / file) - 1);
  Recorder sink;
  EXPECT_TRUE(refused(artifact::load(*opened, sink), ErrorCode::io, {file}));
  fs::remove(folder / file);
  EXPECT_TRUE(refused(artifact::load(*opened, sink), ErrorCode::not_found, {file}));
}

}  // namespace
}  // namespace tandem::test
