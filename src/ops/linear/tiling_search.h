// Which cut of a product of few rows is the fastest: which ones to time, and which to take by their
// times. Knows of no clock.
#pragma once

#include <vector>

#include "ops/linear/linear.h"

namespace tandem::ops {

// Microseconds of a dispatch, of one row and of several.
struct ProductTime {
  double one = 0;
  double few = 0;  // 0: not timed
};

struct TimedTiling {
  Tiling tiling;
  ProductTime time;
};

// `chosen` is `rules`, what ops::tiling says, unless it is clearly faster.
struct TunedProduct {
  TimedTiling rules;
  TimedTiling chosen;
};

// Steps away from what the rules say to what is fastest for one row: first other lanes and the
// other kernel, then of the fastest other pieces ahead and workgroups. At last the fastest ones run
// against the rules' once more, with several rows too.
class TilingSearch {
 public:
  TilingSearch(const Linear& op, const gpu::AdapterInfo& adapter);

  // What is to be timed next, the first time the rules' own first; nothing once all is known.
  const std::vector<Tiling>& candidates() const { return candidates_; }
  // Whether with several rows too.
  bool times_few() const { return stage_ == Stage::decision; }
  // Takes the times of the candidates, in order.
  void take(std::span<const ProductTime> times);
  // Once there are no more candidates.
  const TunedProduct& result() const { return result_; }

 private:
  enum class Stage { lanes, details, decision, done };
  void propose(const Tiling& wanted);
  void propose_lanes();
  void propose_details();
  void propose_fastest();
  void next_stage();
  void decide();
  // The fastest for one row.
  const TimedTiling& fastest() const;

  Linear op_;
  gpu::AdapterInfo adapter_;
  Stage stage_ = Stage::lanes;
  std::vector<Tiling> candidates_;
  std::vector<TimedTiling> timed_;  // the rules' first
  TunedProduct result_;
};

}  // namespace tandem::ops
