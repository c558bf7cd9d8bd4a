#include "ops/linear/tiling_search.h"

#include <algorithm>
#include <limits>

namespace tandem::ops {
namespace {

constexpr double clearly = 0.95;  // of the rules' time: less is not worth other bits
constexpr double as_fast = 1.01;  // as the rules, for one row: several may gain
constexpr uint32_t most_lanes = 256, most_ahead = 4;
constexpr size_t most_finalists = 3;

// Against the rules', one row and several counting alike, but for those that are slower for one.
// What noise has made 0 says nothing.
double score(const ProductTime& time, const ProductTime& rules) {
  if (std::min({time.one, time.few, rules.one, rules.few}) <= 0) {
    return std::numeric_limits<double>::infinity();
  }
  const double one = time.one / rules.one, few = time.few / rules.few;
  return one > 1 ? one : (one + few) / 2;
}

}  // namespace

TilingSearch::TilingSearch(const Linear& op, const gpu::AdapterInfo& adapter)
    : op_(op), adapter_(adapter) {
  propose(tiling(op, adapter));
  propose_lanes();
}

void TilingSearch::take(std::span<const ProductTime> times) {
  if (stage_ == Stage::decision) timed_.clear();
  for (size_t i = 0; i < candidates_.size(); ++i) timed_.push_back({candidates_[i], times[i]});
  candidates_.clear();
  while (candidates_.empty() && stage_ != Stage::done) next_stage();
}

void TilingSearch::next_stage() {
  switch (stage_) {
    case Stage::lanes:
      stage_ = Stage::details;
      return propose_details();
    case Stage::details:
      stage_ = Stage::decision;
      return propose_fastest();
    case Stage::decision:
      stage_ = Stage::done;
      return decide();
    case Stage::done:
      return;
  }
}

void TilingSearch::decide() {
  const TimedTiling& rules = timed_.front();
  const auto less = [&](const TimedTiling& a, const TimedTiling& b) {
    return score(a.time, rules.time) < score(b.time, rules.time);
  };
  const TimedTiling& best = *std::min_element(timed_.begin(), timed_.end(), less);
  result_ = {rules, score(best.time, rules.time) <= clearly ? best : rules};
}

void TilingSearch::propose(const Tiling& wanted) {
  Linear op = op_;
  cut(op, wanted);
  const Tiling tiling = ops::tiling(op, adapter_);
  const auto same = [&](const TimedTiling& timed) { return timed.tiling == tiling; };
  if (std::any_of(timed_.begin(), timed_.end(), same)) return;
  if (std::find(candidates_.begin(), candidates_.end(), tiling) == candidates_.end())
    candidates_.push_back(tiling);
}

void TilingSearch::propose_lanes() {
  const Tiling rules = candidates_.front();
  Linear op = op_;
  cut(op, rules);
  op.workgroup = op.ahead = 0;
  const uint32_t most = std::min(row_pieces(op), most_lanes);
  for (const uint32_t lanes : {rules.lanes / 2, rules.lanes * 2, rules.lanes * 4}) {
    if (lanes == 0 || lanes > most) continue;
    op.lanes = lanes;
    propose(tiling(op, adapter_));
  }
  Linear other = op_;
  cut(other, {.units = !rules.units});
  other.lanes = other.workgroup = other.ahead = 0;
  propose(tiling(other, adapter_));
}

void TilingSearch::propose_details() {
  const Tiling start = fastest().tiling;
  Linear op = op_;
  cut(op, start);
  const uint32_t turns = (row_pieces(op) + start.lanes - 1) / start.lanes;
  for (uint32_t ahead = 1; ahead <= most_ahead; ++ahead) {
    if (turns % ahead == 0) propose({start.lanes, start.workgroup, ahead, start.units});
  }
  for (const uint32_t workgroup : {64u, 128u, 256u}) {
    if (workgroup >= start.lanes) propose({start.lanes, workgroup, start.ahead, start.units});
  }
}

// The least of many times is rather too small, so that these are timed anew.
void TilingSearch::propose_fastest() {
  const TimedTiling rules = timed_.front();
  candidates_ = {rules.tiling};
  std::stable_sort(timed_.begin(), timed_.end(), [](const TimedTiling& a, const TimedTiling& b) {
    return a.time.one < b.time.one;
  });
  for (const TimedTiling& timed : timed_) {
    if (timed.time.one > as_fast * rules.time.one || candidates_.size() > most_finalists) break;
    if (!(timed.tiling == rules.tiling)) candidates_.push_back(timed.tiling);
  }
}

const TimedTiling& TilingSearch::fastest() const {
  return *std::min_element(
      timed_.begin(), timed_.end(),
      [](const TimedTiling& a, const TimedTiling& b) { return a.time.one < b.time.one; });
}

}  // namespace tandem::ops
