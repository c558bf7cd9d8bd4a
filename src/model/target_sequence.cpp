#include "model/target_sequence.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/half.h"
#include "model/build.h"
#include "model/drafting.h"
#include "ops/quantize/quantize.h"
#include "ops/sample/sample.h"

namespace tandem::model {
namespace {

template <class T>
std::vector<T> values_of(const std::vector<std::byte>& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return values;
}

std::vector<float> floats(const std::vector<std::byte>& bytes) { return values_of<float>(bytes); }

std::vector<float> halves(const std::vector<std::byte>& bytes) {
  const std::vector<uint16_t> bits = values_of<uint16_t>(bytes);
  std::vector<float> values(bits.size());
  std::transform(bits.begin(), bits.end(), values.begin(), from_half);
  return values;
}

Result<void> keep(std::vector<gpu::CommandList>& lists, Result<gpu::CommandList> list) {
  if (!list) return tl::unexpected<Error>(std::move(list).error());
  lists.push_back(std::move(*list));
  return {};
}

void append(gpu::Submission& submission, const std::vector<gpu::CommandList>& lists,
            gpu::Extent extent) {
  for (const gpu::CommandList& list : lists) submission.items.push_back({&list, extent});
}

}  // namespace

Result<std::unique_ptr<TargetSequence>> TargetSequence::make(Target& target) {
  std::unique_ptr<TargetSequence> sequence(new TargetSequence(target));
  TRY_ASSIGN(sequence->buffers_, make_buffers(target.device(), target.plan().sequence));
  TRY(sequence->record());
  return sequence;
}

Result<bool> TargetSequence::prepare(bool wait) {
  while (true) {
    TRY_ASSIGN(const bool tried, target_.try_rows(wait));
    if (!tried) return false;
    if (target_.shapes_different() == different_) break;
    // It may ask for shapes that are not tried yet.
    forget_recording();
    TRY(record());
  }
  if (wait) TRY(target_.device().finish_kernels());
  TRY_ASSIGN(const uint32_t unfinished, target_.device().unfinished());
  return unfinished == 0;
}

void TargetSequence::forget_recording() {
  for (auto* lists : {&chunk_lists_, &row_inputs_, &row_owning_, &last_row_, &finish_, &verify_,
                      &next_.argmax, &next_.sample, &drafts_.argmax, &drafts_.sample,
                      &verify_next_.argmax, &verify_next_.sample}) {
    lists->clear();
  }
  stages_.clear();
}

Result<void> TargetSequence::record() {
  different_ = target_.shapes_different();
  const Plan& plan = target_.plan();
  row_ = {"row", 1, ops::RowRoute::one, ops::AttentionRoute::split, "step"};
  chunk_ = {"chunk", plan.capacity.input_bound, ops::RowRoute::many, ops::AttentionRoute::whole,
            "chunk_step"};
  score_ = {"score", plan.score_rows, ops::RowRoute::many, ops::AttentionRoute::whole,
            "chunk_step"};
  Recording recording(
      target_.device(), target_.config(), plan, target_.weights(), target_.scratch(), buffers_,
      [this](ops::Linear& op, TakenStep step) { return target_.suit(op, step); },
      target_.leaves_steps());
  const uint32_t owning = target_.config().owning_layers();
  const uint32_t layers = static_cast<uint32_t>(target_.config().layers.size());
  TRY(keep(chunk_lists_, recording.inputs(chunk_, owning)));
  TRY(keep(chunk_lists_, recording.layers(chunk_, 0, owning)));
  TRY(keep(row_inputs_, recording.inputs(row_, layers)));
  TRY(keep(row_owning_, recording.layers(row_, 0, owning)));
  TRY(keep(last_row_, recording.last_row(chunk_, row_)));
  TRY(keep(finish_, recording.layers(row_, owning, layers)));
  TRY(keep(finish_, recording.head(row_)));
  TRY(keep(next_.argmax, recording.next_token(row_, false)));
  TRY(keep(next_.sample, recording.next_token(row_, true)));
  if constexpr (has_mtp) {
    if (target_.assistant()) TRY(record_drafts(recording));
  }
  return record_score(recording);
}

Result<void> TargetSequence::record_drafts(Recording& recording) {
  const uint32_t layers = static_cast<uint32_t>(target_.config().layers.size());
  verify_row_ = {"row", target_.capacity().drafts + 1, ops::RowRoute::few,
                 ops::AttentionRoute::split, "step"};
  Drafting drafting(target_.device(), target_.config(), *target_.assistant(), target_.plan(),
                    target_.weights(), target_.scratch(), buffers_,
                    [this](ops::Linear& op) { target_.cut(op); });
  TRY(keep(drafts_.argmax, drafting.drafts(false)));
  TRY(keep(drafts_.sample, drafting.drafts(true)));
  TRY(keep(verify_, recording.inputs(verify_row_, layers)));
  TRY(keep(verify_, recording.layers(verify_row_, 0, layers)));
  TRY(keep(verify_, recording.head(verify_row_)));
  TRY(keep(verify_next_.argmax, recording.next_token(verify_row_, false)));
  return keep(verify_next_.sample, recording.next_token(verify_row_, true));
}

Result<void> TargetSequence::record_score(Recording& recording) {
  const uint32_t layers = static_cast<uint32_t>(target_.config().layers.size());
  TRY_ASSIGN(gpu::CommandList inputs, recording.inputs(score_, layers));
  stages_.push_back({std::move(inputs), {{"embed", recording.view(score_, "h")}}});
  if (target_.config().per_layer_input > 0) {
    stages_.back().results.push_back(
        {"per_layer_inputs", recording.view(score_, "per_layer_inputs")});
  }
  for (uint32_t layer = 0; layer < layers; ++layer) {
    TRY_ASSIGN(gpu::CommandList commands, recording.layers(score_, layer, layer + 1));
    stages_.push_back(
        {std::move(commands), {{fmt::format("layer{}", layer), recording.view(score_, "h")}}});
  }
  stages_.back().results.push_back(
      {"final", recording.view(score_, "normed"),
       recording.row_format(score_, target_.weights().matrix("embedding"))});
  TRY_ASSIGN(gpu::CommandList head, recording.head(score_));
  stages_.push_back({std::move(head), {}});
  score_logits_ = recording.view(score_, "logits");
  return {};
}

std::vector<const gpu::CommandList*> TargetSequence::method(std::string_view name) const {
  std::vector<const gpu::CommandList*> lists;
  auto add = [&](const std::vector<gpu::CommandList>& some) {
    for (const gpu::CommandList& list : some) lists.push_back(&list);
  };
  if (name == "prefill") add(chunk_lists_), add(row_inputs_), add(last_row_), add(finish_);
  if (name == "decode" || name == "sampled decode") {
    add(row_inputs_), add(row_owning_), add(finish_);
  }
  if (name == "prefill" || name == "decode") add(next_.argmax);
  if (name == "sampled decode") add(next_.sample);
  if (name == "k2_round") add(drafts_.argmax), add(verify_), add(verify_next_.argmax);
  if (name == "sampled k2_round") add(drafts_.sample), add(verify_), add(verify_next_.sample);
  if (name == "score") {
    for (const Stage& stage : stages_) lists.push_back(&stage.commands);
  }
  return lists;
}

Result<void> TargetSequence::write(std::string_view name, uint64_t offset, const void* data,
                                   size_t bytes) {
  return target_.device().write(buffer(name).part(offset, bytes),
                                {static_cast<const std::byte*>(data), bytes});
}

Result<void> TargetSequence::write_step(std::string_view name, const ops::Step& step) {
  return write(name, 0, &step, sizeof(step));
}

Result<void> TargetSequence::start_rounds(uint32_t position, const Request& request) {
  std::vector<uint32_t> stops{static_cast<uint32_t>(request.stop_ids.size())};
  stops.insert(stops.end(), request.stop_ids.begin(), request.stop_ids.end());
  TRY(write("stop_ids", 0, stops.data(), stops.size() * sizeof(uint32_t)));
  sampled_ = !ops::is_argmax(request.sampling, request.biases);
  if (sampled_) {
    const ops::SampleSettings settings =
        ops::sample_settings(request.sampling, request.biases.size());
    TRY(write("sample_settings", 0, &settings, sizeof(settings)));
    if (!request.biases.empty()) {
      TRY(write("biases", 0, request.biases.data(), request.biases.size() * sizeof(TokenBias)));
    }
  }
  TRY(write_step("step", {.position = position, .rows = 1, .remaining = request.max_tokens}));
  position_ = position;
  submitted_ = 0;
  return {};
}

void TargetSequence::finish(gpu::Submission& submission, uint32_t positions) const {
  append(submission, finish_, {1, positions});
  append(submission, chosen(next_), {1, positions});
}

uint32_t TargetSequence::next_position() const {
  uint32_t position = position_;
  for (const InFlight& round : rounds_) position += round.rows;
  return std::min(position, target_.capacity().context - 1);
}

Result<void> TargetSequence::submit_round(gpu::Submission& submission, uint32_t rows) {
  submission.read_back = buffer("record");
  TRY_ASSIGN(gpu::Readback readback, target_.device().submit(submission));
  rounds_.push_back({std::move(readback), ++submitted_, rows});
  return {};
}

bool TargetSequence::keeps(uint32_t position) const {
  return kept(target_.config(), target_.capacity(), position, written_);
}

Result<void> TargetSequence::prefill(uint32_t position, std::span<const uint32_t> ids,
                                     const Request& request) {
  TRY(check_ids_fit(target_.config(), target_.capacity(), position, ids));
  TRY(check_start(target_.config(), target_.capacity(), position, written_));
  TRY(check_request(target_.config(), request));
  rounds_.clear();
  timed_.clear();
  TRY(write("timeline", uint64_t{position} * sizeof(uint32_t), ids.data(), ids.size_bytes()));
  const uint32_t end = position + static_cast<uint32_t>(ids.size());
  written_ = position == 0 ? end : std::max(written_, end);
  TRY(start_rounds(end - 1, request));
  for (uint32_t begin = position; begin < end;) {
    const uint32_t rows = std::min(target_.capacity().input_bound, end - begin);
    TRY(write_step("chunk_step", {.position = begin, .rows = rows}));
    begin += rows;
    gpu::Submission submission{.items = {}, .read_back = {}, .passes = target_.passes()};
    append(submission, chunk_lists_, {rows, begin});
    if (begin == end) {
      append(submission, row_inputs_, {1, end});
      append(submission, last_row_, {1, end});
      finish(submission, end);
      TRY(submit_round(submission, 1));
    } else {
      TRY_ASSIGN(gpu::Readback readback, target_.device().submit(submission));
      if (target_.passes() == gpu::Passes::timed) timed_.push_back(std::move(readback));
    }
  }
  return {};
}

Result<void> TargetSequence::decode(bool with_drafts) {
  if (submitted_ == 0) return fail(ErrorCode::invalid_argument, "decode needs a prefill before it");
  if (with_drafts) TRY(check_drafting(target_.capacity()));
  const uint32_t rows = with_drafts ? target_.capacity().drafts + 1 : 1;
  const uint32_t positions = std::min(next_position() + rows, target_.capacity().context);
  gpu::Submission submission{.items = {}, .read_back = {}, .passes = target_.passes()};
  if (with_drafts) {
    append(submission, chosen(drafts_), {1, positions});
    append(submission, verify_, {rows, positions});
    append(submission, chosen(verify_next_), {rows, positions});
  } else {
    append(submission, row_inputs_, {1, positions});
    append(submission, row_owning_, {1, positions});
    finish(submission, positions);
  }
  written_ = std::max(written_, positions);
  return submit_round(submission, rows);
}

Result<void> TargetSequence::script(std::span<const uint32_t> drafts) {
  TRY(check_script(target_.capacity(), drafts));
  return write("script", 0, drafts.data(), drafts.size_bytes());
}

Result<std::optional<Round>> TargetSequence::harvest(bool wait) {
  if (rounds_.empty()) return std::nullopt;
  for (; !timed_.empty(); timed_.pop_front()) {
    TRY_ASSIGN(const bool ready, is_ready(timed_.front(), wait));
    if (!ready) return std::nullopt;
    TRY_ASSIGN(times_.emplace_back(), timed_.front().times());
  }
  TRY_ASSIGN(const bool ready, is_ready(rounds_.front().record, wait));
  if (!ready) return std::nullopt;
  InFlight in_flight = std::move(rounds_.front());
  rounds_.pop_front();
  if (target_.passes() == gpu::Passes::timed) {
    TRY_ASSIGN(times_.emplace_back(), in_flight.record.times());
  }
  TRY_ASSIGN(const std::vector<std::byte> bytes, in_flight.record.take());
  Round round;
  std::memcpy(&round, bytes.data(), sizeof(round));
  if (round.number != in_flight.number) return std::nullopt;
  TRY(check_round(target_.config(), round));
  position_ = round.position + round.count;
  harvested_rows_ = round.rows;
  return round;
}

Result<bool> TargetSequence::is_ready(const gpu::Readback& readback, bool wait) {
  if (wait) TRY(target_.device().wait(readback));
  return readback.ready();
}

Result<std::vector<float>> TargetSequence::logits() {
  const uint64_t bytes = uint64_t{harvested_rows_} * target_.config().vocabulary * sizeof(float);
  const gpu::View rows = target_.scratch().find("row.logits")->second.view();
  TRY_ASSIGN(const std::vector<std::byte> read, target_.device().read(rows.part(0, bytes)));
  return floats(read);
}

Result<void> TargetSequence::score(std::span<const uint32_t> ids, const LogitsSink& sink,
                                   const Trace& trace) {
  TRY(check_ids_fit(target_.config(), target_.capacity(), 0, ids));
  rounds_.clear();
  submitted_ = 0;
  written_ = static_cast<uint32_t>(ids.size());
  TRY(write("timeline", 0, ids.data(), ids.size_bytes()));
  const uint32_t end = static_cast<uint32_t>(ids.size());
  for (uint32_t begin = 0; begin < end;) {
    const uint32_t rows = std::min(score_.max_rows, end - begin);
    const gpu::Extent extent{rows, begin + rows};
    TRY(write_step("chunk_step", {.position = begin, .rows = rows}));
    gpu::Submission submission{.items = {}, .read_back = {}, .passes = target_.passes()};
    for (const Stage& stage : stages_) {
      submission.items.push_back({&stage.commands, extent});
      if (!trace || stage.results.empty()) continue;
      TRY(target_.device().submit(submission));
      submission.items.clear();
      TRY(trace_stage(stage, begin, rows, trace));
    }
    submission.read_back =
        score_logits_.part(0, uint64_t{rows} * target_.config().vocabulary * sizeof(float));
    TRY_ASSIGN(gpu::Readback readback, target_.device().submit(submission));
    TRY(target_.device().wait(readback));
    TRY_ASSIGN(const std::vector<std::byte> bytes, readback.take());
    TRY(sink(begin, floats(bytes)));
    begin += rows;
  }
  return {};
}

Result<void> TargetSequence::trace_stage(const Stage& stage, uint32_t first_row, uint32_t rows,
                                         const Trace& trace) {
  for (const auto& [name, view, format] : stage.results) {
    TRY_ASSIGN(const std::vector<std::byte> bytes, target_.device().read(view));
    const std::vector<float> values =
        format == ops::RowFormat::int8
            ? ops::int8_values(target_.config().hidden, values_of<uint32_t>(bytes))
            : floats(bytes);
    if (name != "per_layer_inputs") {
      trace(name, first_row, std::span(values).first(rows * target_.config().hidden));
      continue;
    }
    const uint32_t stride = per_layer_stride(target_.config(), score_.max_rows);
    const uint32_t live = rows * target_.config().per_layer_input;
    std::vector<float> dense;
    for (size_t layer = 0; layer < target_.config().layers.size(); ++layer) {
      const auto begin = values.begin() + static_cast<ptrdiff_t>(layer * stride);
      dense.insert(dense.end(), begin, begin + live);
    }
    trace(name, first_row, dense);
  }
  return {};
}

Result<KvRows> TargetSequence::kv(uint32_t layer, uint32_t begin, uint32_t end) {
  const spec::Config& config = target_.config();
  TRY(check_kv_range(config, target_.capacity(), layer, begin, end));
  const uint32_t owner = config.layers[layer].kv_layer;
  const spec::Layer& shape = config.layers[owner];
  auto read = [&](std::string_view plane) -> Result<std::vector<float>> {
    TRY_ASSIGN(const std::vector<std::byte> bytes,
               target_.device().read(buffer(fmt::format("layers.{}.{}", owner, plane))));
    return target_.capacity().kv == ops::KvType::f16 ? halves(bytes) : floats(bytes);
  };
  TRY_ASSIGN(const std::vector<float> keys, read("keys"));
  TRY_ASSIGN(const std::vector<float> values, read("values"));
  return unroll_kv(keys, values, kv_slots(config, shape, target_.capacity()),
                   size_t{shape.kv_heads} * shape.head_dim, begin, end);
}

}  // namespace tandem::model
