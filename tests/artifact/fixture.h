// Small artifacts to damage, exported once from a synthetic checkpoint, and copies of them.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>

#include "exporter/export.h"
#include "support/checkpoint.h"
#include "support/refusal.h"

namespace tandem::test {

// Two layers in three shards; or, if `large`, one whose F32 tables fill several pieces.
inline const std::filesystem::path& exported(bool large) {
  static std::map<bool, TemporaryFolder> folders;
  static std::map<bool, std::filesystem::path> paths;
  if (!paths.contains(large)) {
    const std::filesystem::path& folder = folders[large].path();
    TinyShape shape{.layers = 2, .kv_shared = 0};
    exporter::ExportOptions options;
    options.weights.shard_bytes = 60'000;
    if (large) {
      shape.vocabulary = 20'011;
      options.weights.recipe.table = spec::WeightType::f32;
      options.weights.shard_bytes = 1 << 30;
    }
    write_checkpoint(folder / "checkpoint", tiny_config(shape));
    paths[large] = folder / "artifact";
    EXPECT_TRUE(
        accepted(exporter::export_checkpoint(folder / "checkpoint", paths[large], options)));
  }
  return paths[large];
}

// Makes a folder's manifest and receipt anew for the shards that lie there, as who forges an
// artifact would.
inline void sign(const std::filesystem::path& folder, artifact::Manifest manifest,
                 artifact::Receipt receipt) {
  for (artifact::Shard& shard : manifest.shards) {
    const std::string bytes = read_file(folder / shard.file);
    shard.bytes = bytes.size();
    shard.pieces.clear();
    for (size_t begin = 0; begin < bytes.size(); begin += artifact::piece_bytes)
      shard.pieces.push_back(sha256(std::string_view(bytes).substr(begin, artifact::piece_bytes)));
  }
  manifest.origin = origin_digest(*receipt.target);
  receipt.files = bound_files(manifest);
  receipt.shards = bound_shards(manifest);
  write_file(folder / artifact::manifest_file, manifest_text(manifest));
  write_file(folder / artifact::receipt_file, receipt_text(receipt));
}

class ArtifactTest : public ::testing::Test {
 protected:
  // A fresh copy.
  std::filesystem::path copy(bool large = false) {
    const std::filesystem::path path = folder_.path() / "artifact";
    std::filesystem::remove_all(path);
    std::filesystem::copy(exported(large), path, std::filesystem::copy_options::recursive);
    return path;
  }

  TemporaryFolder folder_;
};

}  // namespace tandem::test
