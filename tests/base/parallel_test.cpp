// parallel_for covers each index once, in ranges that begin at multiples of the granule.
#include "base/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

namespace tandem {
namespace {

TEST(ParallelFor, CoversEachIndexOnce) {
  for (const uint64_t count : {1, 2, 31, 32, 33, 1000}) {
    for (const uint64_t granule : {1, 32, 64, 5000}) {
      for (const unsigned threads : {0, 1, 2, 3, 16}) {
        std::vector<std::atomic<int>> visits(count);
        std::atomic<int> misplaced{0};
        parallel_for(
            count, granule,
            [&](uint64_t begin, uint64_t end) {
              if (begin % granule != 0 || begin >= end || end > count) ++misplaced;
              for (uint64_t i = begin; i < std::min(end, count); ++i) ++visits[i];
            },
            threads);
        EXPECT_EQ(misplaced, 0) << count << " by " << granule << " on " << threads;
        for (uint64_t i = 0; i < count; ++i) {
          ASSERT_EQ(visits[i], 1) << "index " << i << " of " << count << " by " << granule << " on "
                                  << threads;
        }
      }
    }
  }
}

TEST(ParallelFor, NeverCallsForNothing) {
  parallel_for(0, 8, [](uint64_t, uint64_t) { ADD_FAILURE() << "called for an empty range"; });
}

}  // namespace
}  // namespace tandem
