// What an export publishes is what it read back from the disk, or nothing: whatever happens to the
// staged files, to the disk, or to the caller's patience.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "artifact/verify.h"
#include "exporter/export.h"
#include "support/checkpoint.h"
#include "support/child.h"
#include "support/refusal.h"

namespace tandem::test {
namespace {

namespace fs = std::filesystem;
using exporter::export_checkpoint;
using exporter::ExportOptions;
using exporter::ExportReport;
using Names = std::vector<std::string>;

constexpr int skipped = 77;

int exit_status(const ::testing::AssertionResult& result) {
  if (!result) fprintf(stderr, "%s\n", result.message());
  return result ? 0 : 1;
}

struct TransactionTest : ::testing::Test {
  TransactionTest() {
    fs::create_directory(place());
    write_checkpoint(in(), tiny_config({.layers = 2, .kv_shared = 0}));
  }

  fs::path in() const { return folder.path() / "in"; }
  fs::path place() const { return folder.path() / "place"; }  // of the output
  fs::path out() const { return place() / "out"; }

  Names left() const {
    Names names;
    for (const auto& entry : fs::directory_iterator(place()))
      names.push_back(entry.path().filename().string());
    return names;
  }
  fs::path staged() const { return place() / left().at(0); }

  // Exports, and interferes at a step.
  Result<ExportReport> run(PublicationStep when, const std::function<void()>& interfere) {
    ExportOptions options;
    options.observer = [&](PublicationStep step) {
      if (step == when) interfere();
    };
    return export_checkpoint(in(), out(), options);
  }
  Result<ExportReport> run_on_disk(const std::function<void()>& damage) {
    return run(PublicationStep::folder_synced, damage);
  }

  TemporaryFolder folder;
};

TEST_F(TransactionTest, OneChangedByteOfAnyFileIsReadBack) {
  ASSERT_TRUE(accepted(export_checkpoint(in(), out())));
  Names files;
  for (const auto& entry : fs::directory_iterator(out()))
    files.push_back(entry.path().filename().string());
  EXPECT_EQ(files.size(), 6u);
  for (const std::string& file : files) {
    fs::remove_all(out());
    const auto result = run_on_disk([&] {
      std::string bytes = read_file(staged() / file);
      bytes[bytes.size() / 2] ^= 1;
      write_file(staged() / file, bytes);
    });
    EXPECT_FALSE(result) << file;
    EXPECT_EQ(left(), Names{}) << file;
  }
}

// Each is consistent in itself, but not what was written.
TEST_F(TransactionTest, AnotherArtifactInItsPlaceIsReadBack) {
  write_checkpoint(folder.path() / "other", tiny_config({.layers = 2, .kv_shared = 0}),
                   CheckpointOptions{.seed = 2});
  ASSERT_TRUE(accepted(export_checkpoint(folder.path() / "other", folder.path() / "other_out")));
  const auto result = run_on_disk([&] {
    fs::copy(folder.path() / "other_out", staged(),
             fs::copy_options::recursive | fs::copy_options::overwrite_existing);
  });
  EXPECT_TRUE(refused(result, ErrorCode::hash_mismatch, {"manifest.json", "receipt.json"}));
  EXPECT_EQ(left(), Names{});
}

TEST_F(TransactionTest, LinksAndStrangersInTheFolderAreRefused) {
  const auto link = run_on_disk([&] {
    fs::rename(staged() / "tokenizer.bin", folder.path() / "tokenizer.bin");
    fs::create_symlink(folder.path() / "tokenizer.bin", staged() / "tokenizer.bin");
  });
  EXPECT_TRUE(refused(link, ErrorCode::unsafe_path, {"tokenizer.bin"}));
  EXPECT_EQ(left(), Names{});
  const auto stranger = run_on_disk([&] { write_file(staged() / "notes.txt", "mine"); });
  EXPECT_TRUE(refused(stranger, ErrorCode::malformed_artifact, {"notes.txt"}));
  EXPECT_EQ(read_file(staged() / "notes.txt"), "mine");  // is not ours to remove
}

TEST_F(TransactionTest, CancelledAtAnyStepLeavesNothing) {
  std::vector<PublicationStep> steps;
  ExportOptions options;
  options.observer = [&](PublicationStep step) { steps.push_back(step); };
  ASSERT_TRUE(accepted(export_checkpoint(in(), out(), options)));
  for (size_t last = 0; last < steps.size(); ++last) {
    fs::remove_all(out());
    CancelFlag cancel = false;
    size_t done = 0;
    options.weights.cancel = &cancel;
    options.observer = [&](PublicationStep) { cancel = done++ == last || cancel; };
    const auto result = export_checkpoint(in(), out(), options);
    const std::string where(name(steps[last]));
    if (steps[last] < PublicationStep::checked) {
      EXPECT_TRUE(refused(result, ErrorCode::cancelled)) << where;
      EXPECT_EQ(left(), Names{}) << where;
    } else {
      EXPECT_TRUE(accepted(result)) << where;
      EXPECT_TRUE(accepted(artifact::verify(out()))) << where;
    }
  }
}

TEST_F(TransactionTest, AFileThatTheSystemCutsIsAnError) {
  for (const rlim_t bytes : {rlim_t{0}, rlim_t{1000}, rlim_t{10'000}, rlim_t{30'000}}) {
    const Ending ending = Child([&] {
                            const rlimit limit{bytes, bytes};
                            signal(SIGXFSZ, SIG_IGN);
                            if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return skipped;
                            return exit_status(refused(export_checkpoint(in(), out()),
                                                       ErrorCode::io, {"cannot write"}));
                          }).wait();
    if (ending.status == skipped) GTEST_SKIP() << "the system sets no limit for files";
    EXPECT_EQ(ending.status, 0) << bytes << " bytes";
    EXPECT_EQ(left(), Names{}) << bytes << " bytes";
  }
}

// From a disk that has no room for one file to one that has room for all.
TEST_F(TransactionTest, AFullDiskIsAnErrorAndTheNextExportWorks) {
  const auto work = [&] {
    if (!own_mounts()) return skipped;
    int full = 0;
    for (int kib = 4; kib < 4096; kib = kib * 3 / 2) {
      const std::string size = "size=" + std::to_string(kib) + "k";
      if (mount("tmpfs", place().c_str(), "tmpfs", 0, size.c_str()) != 0) return skipped;
      const auto result = export_checkpoint(in(), out());
      if (result) return exit_status(accepted(artifact::verify(out()))) + (full < 4 ? 10 : 0);
      ++full;
      if (!refused(result, ErrorCode::io, {"No space left"}) || left() != Names{})
        return exit_status(accepted(result)) + 20;
      umount(place().c_str());
    }
    return 30;
  };
  const Ending ending = Child(work).wait();
  if (ending.status == skipped) GTEST_SKIP() << "this user may not mount a small disk";
  EXPECT_EQ(ending.status, 0);
}

TEST_F(TransactionTest, AReadOnlyPlaceIsRefused) {
  const auto work = [&] {
    const bool mounted =
        own_mounts() && mount("tmpfs", place().c_str(), "tmpfs", MS_RDONLY, nullptr) == 0;
    if (!mounted) return skipped;
    return exit_status(refused(export_checkpoint(in(), out()), ErrorCode::io, {"Read-only"}));
  };
  const Ending ending = Child(work).wait();
  if (ending.status == skipped) GTEST_SKIP() << "this user may not mount a disk";
  EXPECT_EQ(ending.status, 0);
}

TEST_F(TransactionTest, AFolderWithoutPermissionIsRefused) {
  if (geteuid() == 0) GTEST_SKIP() << "root may write everywhere";
  fs::permissions(place(), fs::perms::owner_read | fs::perms::owner_exec);
  EXPECT_TRUE(refused(export_checkpoint(in(), out()), ErrorCode::io, {"Permission denied"}));
  fs::permissions(place(), fs::perms::owner_all);
  EXPECT_EQ(left(), Names{});
}

}  // namespace
}  // namespace tandem::test
