// Which cuts of a product are timed, and which is taken by their times.
#include "ops/linear/tiling_search.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>

namespace tandem::ops {
namespace {

using spec::WeightType;

Linear product(uint32_t rows, uint32_t columns, bool x_in_lanes) {
  return {.weights = {WeightType::q4_0, rows, columns, {{0, rows, {}, {}}}},
          .x_format = x_in_lanes ? RowFormat::lanes : RowFormat::columns};
}

using Times = std::function<ProductTime(const Tiling&)>;

struct Search {
  TunedProduct result;
  std::vector<Tiling> timed;   // with one row
  std::vector<Tiling> finals;  // with several too
};

Search search(const Linear& op, const Times& time) {
  TilingSearch search(op, {});
  Search found;
  while (!search.candidates().empty()) {
    std::vector<ProductTime> times;
    for (const Tiling& candidate : search.candidates()) {
      (search.times_few() ? found.finals : found.timed).push_back(candidate);
      times.push_back(time(candidate));
      if (!search.times_few()) times.back().few = 0;
    }
    search.take(times);
  }
  found.result = search.result();
  return found;
}

// 10 us, and less for each property that is as wanted, most of all for the lanes.
Times wanting(const Tiling& wanted, double gain) {
  return [=](const Tiling& tiling) -> ProductTime {
    double us = 10;
    if (tiling.units == wanted.units && tiling.lanes == wanted.lanes) us -= 2 * gain;
    if (tiling.ahead == wanted.ahead) us -= gain;
    if (tiling.workgroup == wanted.workgroup) us -= gain;
    return {us, 2 * us};
  };
}

TEST(TilingSearch, EveryCandidateIsPossibleAndTimedOnce) {
  for (const bool x_in_lanes : {false, true}) {
    for (const auto& [rows, columns] : {std::pair(128u, 32u),
                                        {1536u, 256u},
                                        {24576u, 1536u},
                                        {1536u, 12288u},
                                        {262144u, 1536u}}) {
      const Linear op = product(rows, columns, x_in_lanes);
      const Search found = search(op, [](const Tiling&) { return ProductTime{1, 1}; });
      EXPECT_EQ(found.timed.front(), tiling(op, {}));
      EXPECT_EQ(found.finals.front(), tiling(op, {}));
      EXPECT_LE(found.finals.size(), 4u) << shape(op);
      EXPECT_GT(found.timed.size(), 2u) << shape(op);
      EXPECT_LE(found.timed.size(), 11u) << shape(op);
      std::set<std::string> texts;
      for (const Tiling& timed : found.timed) {
        EXPECT_TRUE(is_possible(timed));
        Linear cut_so = op;
        cut(cut_so, timed);
        const Route route = linear_route(cut_so, op.weights.parts[0], {});
        EXPECT_NE(describe(route).find(timed.units ? "WORDS=4" : "WORDS=1"), std::string::npos);
        EXPECT_TRUE(texts.insert(describe(route)).second) << describe(route);
      }
    }
  }
}

TEST(TilingSearch, FindsTheOtherKernelLanesPiecesAheadAndWorkgroup) {
  const Tiling wanted[] = {{.lanes = 64, .workgroup = 256, .ahead = 3},
                           {.lanes = 64, .workgroup = 64, .ahead = 1},
                           {.lanes = 16, .workgroup = 64, .ahead = 3, .units = true}};
  for (const Tiling& tiling : wanted) {
    const Linear op = product(2560, 1536, true);
    ASSERT_EQ(ops::tiling(op, {}), (Tiling{.lanes = 128, .workgroup = 128, .ahead = 2}));
    const TunedProduct found = search(op, wanting(tiling, 1)).result;
    EXPECT_EQ(found.chosen.tiling, tiling) << tiling.lanes;
    EXPECT_EQ(found.chosen.time.one, 6);
    EXPECT_EQ(found.chosen.time.few, 12);
    EXPECT_EQ(found.rules.tiling, ops::tiling(op, {}));
  }
}

TEST(TilingSearch, KeepsTheRulesForLessThanFivePercent) {
  const Linear op = product(2560, 1536, false);
  const Tiling rules = tiling(op, {});
  Tiling other = rules;
  other.workgroup = 256;
  const auto faster = [&](double part) {
    return search(op, [&](const Tiling& tiling) -> ProductTime {
      return tiling == other ? ProductTime{part, part} : ProductTime{1, 1};
    });
  };
  EXPECT_EQ(faster(0.96).result.chosen.tiling, rules);
  EXPECT_EQ(faster(0.94).result.chosen.tiling, other);
}

TEST(TilingSearch, ATimeOfNothingIsNone) {
  const Linear op = product(2560, 1536, false);
  const Tiling rules = tiling(op, {});
  Tiling other = rules;
  other.workgroup = 256;
  for (const Tiling& nothing : {rules, other}) {
    const TunedProduct found = search(op, [&](const Tiling& tiling) -> ProductTime {
                                 if (tiling == nothing) return {8, 0};
                                 return tiling == rules ? ProductTime{10, 40} : ProductTime{12, 48};
                               }).result;
    EXPECT_EQ(found.chosen.tiling, rules);
  }
}

TEST(TilingSearch, OneRowAndSeveralCountAlike) {
  const Linear op = product(2560, 1536, false);
  const Tiling rules = tiling(op, {});
  Tiling other = rules;
  other.workgroup = 256;
  // Of one row a fifth faster, of several slower: by as much, or by less.
  for (const auto& [few, chosen] : {std::pair(48.0, rules), {41.0, other}}) {
    const TunedProduct found = search(op, [&](const Tiling& tiling) -> ProductTime {
                                 return tiling == other ? ProductTime{8, few} : ProductTime{10, 40};
                               }).result;
    EXPECT_EQ(found.chosen.tiling, chosen) << few;
  }
}

TEST(TilingSearch, WhatIsSlowerForOneRowIsNotTaken) {
  const Linear op = product(2560, 1536, false);
  const Tiling rules = tiling(op, {});
  Tiling other = rules;
  other.workgroup = 256;
  for (const auto& [one, chosen] : {std::pair(10.05, rules), {10.0, other}}) {
    const TunedProduct found = search(op, [&](const Tiling& tiling) -> ProductTime {
                                 if (tiling == other) return {one, 30};
                                 return tiling == rules ? ProductTime{10, 40} : ProductTime{12, 48};
                               }).result;
    EXPECT_EQ(found.chosen.tiling, chosen) << one;
  }
}

TEST(TilingSearch, ALuckyTimeIsNotTaken) {
  const Linear op = product(2560, 1536, false);
  const Tiling rules = tiling(op, {});
  std::set<uint32_t> lucky;
  const TunedProduct found =
      search(op, [&](const Tiling& tiling) -> ProductTime {
        const bool first = lucky.insert(tiling.lanes).second;
        return tiling != rules && first ? ProductTime{5, 5} : ProductTime{10, 10};
      }).result;
  EXPECT_EQ(found.chosen.tiling, rules);
}

TEST(Tiling, AProductThatIsCutTakesIt) {
  for (const Tiling& tiling : {Tiling{.lanes = 4, .workgroup = 256, .ahead = 3},
                               Tiling{.lanes = 2, .workgroup = 128, .ahead = 2, .units = true}}) {
    Linear op = product(128, 768, true);
    cut(op, tiling);
    EXPECT_EQ(ops::tiling(op, {}), tiling);
    for (const RowRoute rows : {RowRoute::one, RowRoute::few}) {
      op.rows = rows;
      const std::string text = describe(linear_route(op, op.weights.parts[0], {}));
      EXPECT_NE(text.find(tiling.units ? "WORDS=4" : "WORDS=1"), std::string::npos);
      EXPECT_NE(text.find(fmt::format("LANES={} WORKGROUP={} AHEAD={}", tiling.lanes,
                                      tiling.workgroup, tiling.ahead)),
                std::string::npos)
          << text;
    }
  }
}

TEST(Tiling, ImpossibleOnesAreKnown) {
  EXPECT_TRUE(is_possible({.lanes = 256, .workgroup = 256, .ahead = 4}));
  EXPECT_FALSE(is_possible({.lanes = 0}));
  EXPECT_FALSE(is_possible({.lanes = 12}));
  EXPECT_FALSE(is_possible({.lanes = 128, .workgroup = 64}));
  EXPECT_FALSE(is_possible({.workgroup = 512}));
  EXPECT_FALSE(is_possible({.ahead = 0}));
  EXPECT_FALSE(is_possible({.ahead = 5}));
}

TEST(Tiling, AShapeIsWhatDecides) {
  Linear op = product(2560, 1536, true);
  EXPECT_EQ(shape(op), "q4_0 2560x1536 none lanes");
  op.x_format = RowFormat::columns;
  op.epilogue = Epilogue::gelu_pair;
  EXPECT_EQ(shape(op), "q4_0 2560x1536 gelu_pair columns");
}

}  // namespace
}  // namespace tandem::ops
