// One sequence of the target on the GPU: its KV, timeline and step, its recorded methods, and the
// rounds in flight.
#pragma once

#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "model/recording.h"
#include "model/target.h"

namespace tandem::model {

class TargetSequence : public Sequence {
 public:
  static Result<std::unique_ptr<TargetSequence>> make(Target& target);

  Result<bool> prepare(bool wait) override;

  Result<void> prefill(uint32_t position, std::span<const uint32_t> ids,
                       const Request& request) override;
  using Sequence::decode;
  Result<void> decode(bool with_drafts) override;
  Result<void> script(std::span<const uint32_t> drafts) override;
  bool keeps(uint32_t position) const override;
  uint32_t in_flight() const override { return static_cast<uint32_t>(rounds_.size()); }
  Result<std::optional<Round>> harvest(bool wait) override;
  Result<std::vector<float>> logits() override;
  Result<void> score(std::span<const uint32_t> ids, const LogitsSink& sink,
                     const Trace& trace) override;
  Result<KvRows> kv(uint32_t layer, uint32_t begin, uint32_t end) override;

  // The command lists of a method in the order they are submitted (the census; tests).
  std::vector<const gpu::CommandList*> method(std::string_view name) const;

  // The times of each submission of `prefill` and of each harvested round since the last call,
  // where the target runs with Passes::timed; those of prefill come with the round that it ends
  // with.
  std::vector<std::vector<gpu::DispatchTime>> take_times() override {
    return std::exchange(times_, {});
  }

 private:
  // A part of `score` whose results can be observed before the next part overwrites them.
  struct Stage {
    gpu::CommandList commands;
    struct Result {
      std::string name;
      gpu::View rows;
      ops::RowFormat format = ops::RowFormat::columns;
    };
    std::vector<Result> results;
  };

  explicit TargetSequence(Target& target) : target_(target) {}
  Result<void> record();
  void forget_recording();
  Result<void> record_score(Recording& recording);
  Result<void> write(std::string_view buffer, uint64_t offset, const void* data, size_t bytes);
  Result<void> write_step(std::string_view buffer, const ops::Step& step);
  Result<void> start_rounds(uint32_t position, const Request& request);
  // Appends what follows the owning layers of the single row.
  void finish(gpu::Submission& submission, uint32_t positions) const;
  Result<void> record_drafts(Recording& recording);
  // An upper bound of the newest token's position once all rounds in flight are done.
  uint32_t next_position() const;
  Result<void> submit_round(gpu::Submission& submission, uint32_t rows);
  Result<void> trace_stage(const Stage& stage, uint32_t first_row, uint32_t rows,
                           const Trace& trace);
  Result<bool> is_ready(const gpu::Readback& readback, bool wait);
  gpu::View buffer(std::string_view name) const { return buffers_.find(name)->second.view(); }

  Target& target_;
  Buffers buffers_;
  RowSet row_;
  RowSet verify_row_;
  RowSet chunk_;
  RowSet score_;

  // The choice of tokens: the largest, or a sampled one.
  struct Choice {
    std::vector<gpu::CommandList> argmax;
    std::vector<gpu::CommandList> sample;
  };
  const std::vector<gpu::CommandList>& chosen(const Choice& choice) const {
    return sampled_ ? choice.sample : choice.argmax;
  }

  // Prefill runs chunk, row_inputs, last_row and finish; decode row_inputs, row_owning and finish;
  // then next. A round with drafts runs drafts, verify and verify_next.
  std::vector<gpu::CommandList> chunk_lists_;  // inputs and owning layers of a chunk
  std::vector<gpu::CommandList> row_inputs_;   // the inputs of one row
  std::vector<gpu::CommandList> row_owning_;   // the owning layers of one row
  std::vector<gpu::CommandList> last_row_;     // h and normed of a chunk's last row
  std::vector<gpu::CommandList> finish_;       // sharing layers and head of one row
  Choice next_;                                // the token after one row
  Choice drafts_;                              // all drafts of a round
  std::vector<gpu::CommandList> verify_;       // rows up to the head
  Choice verify_next_;                         // the tokens after them
  std::vector<Stage> stages_;
  gpu::View score_logits_;

  struct InFlight {
    gpu::Readback record;
    uint32_t number;  // counts from 1; the record's own if this round emitted
    uint32_t rows;    // at most
  };
  std::deque<InFlight> rounds_;
  uint32_t position_ = 0;        // of the newest token harvested, or of the row that was last
  uint32_t written_ = 0;         // an upper bound of the positions that have been written
  uint32_t submitted_ = 0;       // rounds
  uint32_t harvested_rows_ = 0;  // of the last round harvested
  bool sampled_ = false;
  uint32_t different_ = 0;           // the target's shapes_different when this was recorded
  std::deque<gpu::Readback> timed_;  // the chunks of a timed prefill
  std::vector<std::vector<gpu::DispatchTime>> times_;
};

}  // namespace tandem::model
