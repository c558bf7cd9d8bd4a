// Signals end an export as they end any program, and leave nothing of it.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "program.h"
#include "support/child.h"

namespace tandem::test {
namespace {

namespace fs = std::filesystem;

TEST(CliExport, ASignalEndsItAndNothingIsLeft) {
  const TemporaryFolder folder;
  const fs::path in = folder.path() / "in", place = folder.path() / "place", out = place / "out";
  const fs::path config = fs::path(TANDEM_SOURCE_DIR) / "tests/spec/data/e2b.json";
  write_zero_checkpoint(in, read_text(config));  // large enough to be far from its end
  fs::create_directory(place);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const Child child([&] {
      const int err = open((folder.path() / "err").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
      dup2(err, STDERR_FILENO);
      std::signal(signal, SIG_DFL);  // whatever whoever runs the tests ignores
      execl(TANDEM_PROGRAM, "tandem", "export", in.c_str(), "-o", out.c_str(), nullptr);
      return 127;
    });
    while (fs::is_empty(place) && !child.has_ended())
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    child.kill(signal);
    EXPECT_EQ(child.wait().status, 128 + signal);
    EXPECT_TRUE(contains(read_text(folder.path() / "err"), "[cancelled]"));
    EXPECT_TRUE(fs::is_empty(place)) << signal;
  }
}

TEST(CliExport, AFileThatMayNotGrowIsAnError) {
  const TemporaryFolder folder;
  const fs::path in = folder.path() / "in", place = folder.path() / "place";
  write_checkpoint(in, tiny_config());
  fs::create_directory(place);
  const Child child([&] {
    const int err = open((folder.path() / "err").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
    dup2(err, STDERR_FILENO);
    const rlimit limit{10'000, 10'000};
    signal(SIGXFSZ, SIG_DFL);
    setrlimit(RLIMIT_FSIZE, &limit);
    execl(TANDEM_PROGRAM, "tandem", "export", in.c_str(), "-o", (place / "out").c_str(), nullptr);
    return 127;
  });
  EXPECT_EQ(child.wait().status, 1);
  EXPECT_TRUE(contains(read_text(folder.path() / "err"), "[io]"));
  EXPECT_TRUE(fs::is_empty(place));
}

}  // namespace
}  // namespace tandem::test
