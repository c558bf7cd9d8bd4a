// Exports that are killed, and exports that meet: afterwards there is a complete artifact or none,
// the checkpoint is as it was, and the next export works and clears away what was left.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <chrono>
#include <map>
#include <random>
#include <thread>

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
using std::chrono::microseconds;

// An int that children share with their parent.
struct Shared {
  Shared() = default;
  ~Shared() { munmap(counter, sizeof(*counter)); }
  std::atomic<int>* counter = new (mmap(nullptr, sizeof(std::atomic<int>), PROT_READ | PROT_WRITE,
                                        MAP_SHARED | MAP_ANONYMOUS, -1, 0)) std::atomic<int>(0);
};

struct Tally {
  int trials = 0, none = 0, complete = 0;
};

class KillTest : public ::testing::Test {
 protected:
  KillTest() {
    write_checkpoint(in(), tiny_config());
    sources_ = contents();
  }

  fs::path in() const { return folder_.path() / "in"; }
  fs::path out() const { return folder_.path() / "out"; }

  std::map<std::string, std::string> contents() const {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::directory_iterator(in()))
      files[entry.path().filename().string()] = read_file(entry.path());
    return files;
  }

  // Checks what a killed export has left, exports again and removes it all.
  void check_rest(const std::string& when) {
    Tally& tally = tallies_[when];
    const bool complete = fs::exists(fs::symlink_status(out()));
    ++(complete ? tally.complete : tally.none);
    ++tally.trials;
    EXPECT_TRUE(contents() == sources_) << when << ": the checkpoint has changed";
    const auto next = export_checkpoint(in(), out());
    EXPECT_TRUE(complete ? refused(next, ErrorCode::already_exists) : accepted(next)) << when;
    EXPECT_TRUE(accepted(artifact::verify(out()))) << when;
    for (const auto& entry : fs::directory_iterator(folder_.path()))
      EXPECT_TRUE(entry.path() == in() || entry.path() == out()) << when << ": " << entry.path();
    fs::remove_all(out());
  }

  void kill_at_random(int trials) {
    const auto begin = std::chrono::steady_clock::now();
    ASSERT_EQ(Child([&] { return export_checkpoint(in(), out()) ? 0 : 1; }).wait().status, 0);
    const auto whole = std::chrono::steady_clock::now() - begin;
    fs::remove_all(out());
    std::mt19937 random(1);
    std::uniform_real_distribution<double> part(0, 1.2);
    for (int trial = 0; trial < trials; ++trial) {
      const Child child([&] { return export_checkpoint(in(), out()) ? 0 : 1; });
      std::this_thread::sleep_for(part(random) * whole);
      child.kill();
      const Ending ending = child.wait();
      EXPECT_TRUE(ending.signal == SIGKILL || ending.status == 0);
      check_rest(ending.signal == SIGKILL ? "any moment" : "after its end");
    }
    print_table();
    EXPECT_GT(tallies_["any moment"].none, 0);
  }

  void print_table() const {
    fmt::print("{:<16} {:>6} {:>6} {:>9}\n", "killed", "trials", "none", "complete");
    for (const auto& [when, tally] : tallies_)
      fmt::print("{:<16} {:>6} {:>6} {:>9}\n", when, tally.trials, tally.none, tally.complete);
  }

  TemporaryFolder folder_;
  std::map<std::string, std::string> sources_;
  std::map<std::string, Tally> tallies_;
};

TEST_F(KillTest, AtEveryStep) {
  std::vector<PublicationStep> steps;
  ExportOptions options;
  options.observer = [&](PublicationStep step) { steps.push_back(step); };
  ASSERT_TRUE(accepted(export_checkpoint(in(), out(), options)));
  fs::remove_all(out());
  EXPECT_EQ(steps.back(), PublicationStep::parent_synced);
  for (size_t last = 0; last < steps.size(); ++last) {
    size_t done = 0;
    options.observer = [&](PublicationStep) {
      if (done++ == last) raise(SIGKILL);
    };
    const Child child([&] { return export_checkpoint(in(), out(), options) ? 0 : 1; });
    EXPECT_EQ(child.wait().signal, SIGKILL);
    const std::string when =
        fmt::format("{} {}", static_cast<int>(steps[last]) + 1, name(steps[last]));
    check_rest(when);
    const Tally& tally = tallies_[when];
    EXPECT_EQ(steps[last] < PublicationStep::renamed ? tally.none : tally.complete, tally.trials);
  }
  print_table();
  EXPECT_EQ(tallies_.size(), static_cast<size_t>(PublicationStep::parent_synced) + 1);
}

TEST_F(KillTest, AtRandom) { kill_at_random(20); }

TEST_F(KillTest, LongAtRandom) { kill_at_random(200); }

// Both have read back all they wrote before either renames.
TEST_F(KillTest, OfTwoExportsToOnePlaceOneWins) {
  for (int round = 0; round < 5; ++round) {
    const Shared arrived;
    ExportOptions options;
    options.observer = [&](PublicationStep step) {
      if (step != PublicationStep::checked) return;
      for (++*arrived.counter; *arrived.counter < 2;) std::this_thread::sleep_for(microseconds(50));
    };
    const auto work = [&] {
      const auto result = export_checkpoint(in(), out(), options);
      return result ? 0 : 1 + static_cast<int>(result.error().code);
    };
    const Child one(work), two(work);
    const std::multiset<int> endings = {one.wait().status, two.wait().status};
    EXPECT_EQ(endings, (std::multiset<int>{0, 1 + static_cast<int>(ErrorCode::already_exists)}));
    check_rest("two at once");
  }
}

TEST_F(KillTest, AnExportThatLivesIsLeftAlone) {
  const Shared turn;
  ExportOptions slow;
  slow.observer = [&](PublicationStep step) {
    if (step != PublicationStep::folder_synced) return;
    for (*turn.counter = 1; *turn.counter == 1;) std::this_thread::sleep_for(microseconds(50));
  };
  const Child child([&] {
    return refused(export_checkpoint(in(), out(), slow), ErrorCode::already_exists) ? 0 : 1;
  });
  while (*turn.counter == 0) std::this_thread::sleep_for(microseconds(50));
  EXPECT_TRUE(accepted(export_checkpoint(in(), out())));
  *turn.counter = 2;  // the slow one reads back all that it wrote, then finds the place taken
  EXPECT_EQ(child.wait().status, 0);
  check_rest("a slow one");
}

}  // namespace
}  // namespace tandem::test
