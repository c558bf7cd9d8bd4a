// Which tokens of a prompt need not be run again.
#include "engine/history.h"

#include <gtest/gtest.h>

namespace tandem::engine {
namespace {

using Ids = std::vector<uint32_t>;

TEST(History, SharesWhatHasKvAndLeavesOneTokenToRun) {
  History history;
  EXPECT_EQ(history.shared(Ids{1, 2, 3}), 0u);
  history.begin(Ids{1, 2, 3});
  EXPECT_EQ(history.shared(Ids{}), 0u);
  EXPECT_EQ(history.shared(Ids{1}), 0u) << "one token is left to run";
  EXPECT_EQ(history.shared(Ids{1, 2, 3}), 2u);
  EXPECT_EQ(history.shared(Ids{1, 2, 3, 4}), 3u) << "all of the prompt has been run";
  EXPECT_EQ(history.shared(Ids{1, 9, 3, 4}), 1u);
  EXPECT_EQ(history.shared(Ids{9, 2, 3, 4}), 0u);
}

TEST(History, TheLastTokenGeneratedHasNoKv) {
  History history;
  history.begin(Ids{1, 2});
  history.append(3);
  EXPECT_EQ(history.shared(Ids{1, 2, 3, 4, 5}), 2u);
  history.append(4);
  EXPECT_EQ(history.ids(), (Ids{1, 2, 3, 4}));
  EXPECT_EQ(history.shared(Ids{1, 2, 3, 4, 5}), 3u);
  history.begin(Ids{1, 2, 3, 4, 5});
  EXPECT_EQ(history.shared(Ids{1, 2, 3, 4, 5, 6}), 5u);
  history.clear();
  EXPECT_TRUE(history.ids().empty());
  EXPECT_EQ(history.shared(Ids{1, 2}), 0u);
}

}  // namespace
}  // namespace tandem::engine
