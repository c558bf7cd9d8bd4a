#include "model/reference.h"

#include <algorithm>
#include <cmath>
#include <deque>

#include "base/error.h"
#include "model/assistant_reference.h"
#include "model/plan.h"
#include "ops/accept/accept.h"
#include "ops/add_norm/add_norm.h"
#include "ops/attention/attention.h"
#include "ops/draft/draft.h"
#include "ops/embedding/embedding.h"
#include "ops/linear/linear.h"
#include "ops/per_layer_input/per_layer_input.h"
#include "ops/qkv_rope/qkv_rope.h"
#include "ops/quantize/quantize.h"
#include "ops/rms_norm/rms_norm.h"
#include "ops/sample/sample.h"

namespace tandem::model {
namespace {

using Floats = std::vector<float>;

// The rows of one step on their way through the layers.
struct Rows {
  uint32_t position = 0;
  uint32_t count = 0;
  Floats h;
  Floats normed;
  Floats per_layer_inputs;  // [layer][row][width]
};

class ReferenceSequence : public HiddenSequence {
 public:
  explicit ReferenceSequence(const Reference& model);

  Result<void> prefill(uint32_t position, std::span<const uint32_t> ids,
                       const Request& request) override;
  using Sequence::decode;
  Result<void> decode(bool with_drafts) override;
  Result<void> script(std::span<const uint32_t> drafts) override;
  bool keeps(uint32_t position) const override {
    return kept(config_, capacity_, position, written_);
  }
  uint32_t in_flight() const override { return static_cast<uint32_t>(rounds_.size()); }
  Result<std::optional<Round>> harvest(bool wait) override;
  Result<std::vector<float>> logits() override { return logits_; }
  const Floats& hidden() const override { return hidden_; }
  Result<void> score(std::span<const uint32_t> ids, const LogitsSink& sink,
                     const Trace& trace) override;
  Result<KvRows> kv(uint32_t layer, uint32_t begin, uint32_t end) override;

 private:
  struct Cache {
    Floats keys;
    Floats values;
  };

  Rows inputs(uint32_t position, uint32_t count) const;
  void layer(uint32_t index, Rows& rows);
  void attention(uint32_t index, Rows& rows);
  void mlp(uint32_t index, Rows& rows) const;
  void per_layer(uint32_t index, Rows& rows) const;
  void add_norm(Rows& rows, const Floats& delta, const Floats& weight, float scalar,
                const Floats& next) const;
  void keep_last_row(Rows& rows) const;
  Floats head(const Rows& rows) const;
  void round(const Rows& rows);
  // The drafts of a round, into the timeline; the step gets the rows to verify them.
  Result<void> draft();

  Floats linear(const std::string& tensor, ops::Epilogue epilogue, const Rows& rows,
                const Floats& x, std::span<const float> times = {}) const;
  // What a product with these weights reads of x where activations may be int8.
  Floats activations(const std::string& tensor, Floats x) const;
  std::string name(uint32_t index, std::string_view tensor) const {
    return fmt::format("layers.{}.{}", index, tensor);
  }
  Floats vector(uint32_t index, std::string_view tensor) const {
    return weights_.row(name(index, tensor));
  }
  float scalar(uint32_t index) const {
    return config_.scales_layers() ? vector(index, "scalar")[0] : 1;
  }
  Floats next_norm(uint32_t index) const {
    return index + 1 < config_.layers.size() ? vector(index + 1, "attention_norm")
                                             : weights_.row("final_norm");
  }
  ops::HostKvCache cache(uint32_t index);

  const spec::Config& config_;
  const Capacity& capacity_;
  const HostWeights& weights_;
  const AssistantReference* assistant_;
  std::vector<Cache> caches_;
  std::vector<uint32_t> timeline_;
  std::vector<uint32_t> script_;
  Request request_;
  uint32_t written_ = 0;  // positions that have been written
  ops::Step step_;
  Floats logits_;
  Floats hidden_;
  std::deque<std::optional<Round>> rounds_;
};

ReferenceSequence::ReferenceSequence(const Reference& model)
    : config_(model.config()),
      capacity_(model.capacity()),
      weights_(model.weights()),
      assistant_(model.assistant()),
      timeline_(capacity_.context + 1) {
  for (uint32_t i = 0; i < config_.owning_layers(); ++i) {
    const spec::Layer& layer = config_.layers[i];
    const size_t size =
        size_t{kv_slots(config_, layer, capacity_)} * layer.kv_heads * layer.head_dim;
    caches_.push_back({Floats(size), Floats(size)});
  }
}

ops::HostKvCache ReferenceSequence::cache(uint32_t index) {
  const uint32_t owner = config_.layers[index].kv_layer;
  return {capacity_.kv, kv_slots(config_, config_.layers[owner], capacity_), caches_[owner].keys,
          caches_[owner].values};
}

Floats ReferenceSequence::linear(const std::string& tensor, ops::Epilogue epilogue,
                                 const Rows& rows, const Floats& x,
                                 std::span<const float> times) const {
  const ops::HostMatrix matrix = weights_.matrix(tensor);
  const uint32_t outputs = epilogue == ops::Epilogue::gelu_pair ? matrix.rows / 2 : matrix.rows;
  Floats y(size_t{rows.count} * outputs);
  ops::linear_reference(matrix, epilogue, config_.softcap.value_or(0), rows.count, x, times, y);
  return y;
}

Floats ReferenceSequence::activations(const std::string& tensor, Floats x) const {
  const ops::HostMatrix matrix = weights_.matrix(tensor);
  if (capacity_.activations == ops::Activations::int8 && ops::takes_int8(matrix.type)) {
    ops::quantize_reference(matrix.columns, x);
  }
  return x;
}

void ReferenceSequence::add_norm(Rows& rows, const Floats& delta, const Floats& weight,
                                 float scalar, const Floats& next) const {
  ops::add_norm_reference(config_.hidden, config_.rms_norm_epsilon, delta, weight, scalar, rows.h,
                          next, next.empty() ? std::span<float>{} : std::span<float>(rows.normed));
}

Rows ReferenceSequence::inputs(uint32_t position, uint32_t count) const {
  Rows rows{position, count, Floats(size_t{count} * config_.hidden), {}, {}};
  rows.normed.resize(rows.h.size());
  const std::span<const uint32_t> ids = std::span(timeline_).subspan(position, count);
  ops::embedding_reference(weights_.matrix("embedding"), config_.hidden,
                           std::sqrt(static_cast<float>(config_.hidden)), ids, rows.h);
  if (const uint32_t width = config_.per_layer_input; width > 0) {
    const uint32_t layers = static_cast<uint32_t>(config_.layers.size());
    Floats table(size_t{count} * layers * width);
    ops::embedding_reference(weights_.matrix("per_layer_embedding"), layers * width,
                             std::sqrt(static_cast<float>(width)), ids, table);
    const Floats context = linear("per_layer_projection", ops::Epilogue::none, rows, rows.h);
    rows.per_layer_inputs.resize(table.size());
    ops::per_layer_input_reference(count, layers, width,
                                   1 / std::sqrt(static_cast<float>(config_.hidden)),
                                   config_.rms_norm_epsilon, context, table,
                                   weights_.row("per_layer_norm"), rows.per_layer_inputs);
  }
  ops::rms_norm_reference(config_.hidden, config_.rms_norm_epsilon, rows.h,
                          vector(0, "attention_norm"), rows.normed);
  return rows;
}

void ReferenceSequence::layer(uint32_t index, Rows& rows) {
  attention(index, rows);
  mlp(index, rows);
  if (config_.per_layer_input > 0) per_layer(index, rows);
}

void ReferenceSequence::attention(uint32_t index, Rows& rows) {
  const spec::Layer& shape = config_.layers[index];
  const bool owns_kv = !config_.shares_kv(index);
  const std::string qkv_name = name(index, "qkv"), output = name(index, "attention_output");
  const Floats qkv =
      linear(qkv_name, ops::Epilogue::none, rows, activations(qkv_name, rows.normed));
  Floats q(size_t{rows.count} * config_.heads * shape.head_dim);
  ops::qkv_rope_reference({.heads = config_.heads,
                           .kv_heads = shape.kv_heads,
                           .head_dim = shape.head_dim,
                           .owns_kv = owns_kv,
                           .key_is_value = shape.key_is_value,
                           .epsilon = config_.rms_norm_epsilon,
                           .rope = shape.rope,
                           .norms_values = config_.norms_values(),
                           .query_scale = config_.query_scale()},
                          rows.position, rows.count, qkv, vector(index, "q_norm"),
                          owns_kv ? vector(index, "k_norm") : Floats{}, q, cache(index));
  Floats attended(q.size());
  ops::attention_reference(config_.heads, shape.kv_heads, shape.head_dim,
                           shape.kind == spec::LayerKind::sliding ? config_.window : 0,
                           rows.position, rows.count, q, cache(index), attended);
  const Floats delta =
      linear(output, ops::Epilogue::none, rows, activations(output, std::move(attended)));
  add_norm(rows, delta, vector(index, "post_attention_norm"), 1, vector(index, "mlp_norm"));
}

void ReferenceSequence::mlp(uint32_t index, Rows& rows) const {
  const std::string gate_up = name(index, "gate_up"), down = name(index, "down");
  Floats gated = linear(gate_up, ops::Epilogue::gelu_pair, rows, activations(gate_up, rows.normed));
  const Floats delta = linear(down, ops::Epilogue::none, rows, activations(down, std::move(gated)));
  const bool ends_layer = config_.per_layer_input == 0;
  add_norm(rows, delta, vector(index, "post_mlp_norm"), ends_layer ? scalar(index) : 1,
           ends_layer ? next_norm(index) : Floats{});
}

void ReferenceSequence::per_layer(uint32_t index, Rows& rows) const {
  const size_t size = size_t{rows.count} * config_.per_layer_input;
  const Floats gated = linear(name(index, "per_layer_gate"), ops::Epilogue::gelu_times, rows,
                              rows.h, std::span(rows.per_layer_inputs).subspan(index * size, size));
  const Floats delta = linear(name(index, "per_layer_output"), ops::Epilogue::none, rows, gated);
  add_norm(rows, delta, vector(index, "post_per_layer_norm"), scalar(index), next_norm(index));
}

// KV-shared layers write no KV, so only the row that the head reads needs them.
void ReferenceSequence::keep_last_row(Rows& rows) const {
  auto keep = [&](Floats& values, size_t width) {
    values.erase(values.begin(), values.end() - static_cast<ptrdiff_t>(width));
  };
  keep(rows.h, config_.hidden);
  keep(rows.normed, config_.hidden);
  Floats per_layer_inputs;
  const size_t width = config_.per_layer_input;
  for (size_t layer = 0; width > 0 && layer < config_.layers.size(); ++layer) {
    const auto end =
        rows.per_layer_inputs.begin() + static_cast<ptrdiff_t>((layer + 1) * rows.count * width);
    per_layer_inputs.insert(per_layer_inputs.end(), end - static_cast<ptrdiff_t>(width), end);
  }
  rows.per_layer_inputs = std::move(per_layer_inputs);
  rows.position += rows.count - 1;
  rows.count = 1;
}

Floats ReferenceSequence::head(const Rows& rows) const {
  return linear("embedding", config_.softcap ? ops::Epilogue::softcap : ops::Epilogue::none, rows,
                activations("embedding", rows.normed));
}

// From rows that have passed all layers to the tokens after them.
void ReferenceSequence::round(const Rows& rows) {
  logits_ = head(rows);
  std::vector<uint32_t> targets(rows.count);
  for (uint32_t r = 0; r < rows.count; ++r) {
    targets[r] = ops::sample_reference(
        request_.sampling, request_.biases, std::span(timeline_).first(rows.position + r + 1),
        std::span(logits_).subspan(size_t{r} * config_.vocabulary, config_.vocabulary));
  }
  const auto [step, record] = ops::accept_reference(step_, capacity_.context, rows.count - 1,
                                                    targets, logits_, request_.stop_ids, timeline_);
  step_ = step;
  const auto accepted = rows.normed.begin() + size_t{record.accepted} * config_.hidden;
  hidden_ = activations("embedding", Floats(accepted, accepted + config_.hidden));
  rounds_.push_back(record);
}

Result<void> ReferenceSequence::draft() {
  std::vector<ops::Step> steps(capacity_.drafts);
  ops::draft_steps_reference(capacity_.context, step_, steps);
  const uint32_t position = step_.position;
  const bool sampled = !ops::is_argmax(request_.sampling, request_.biases);
  Floats hidden = hidden_;
  for (uint32_t k = 0; k < capacity_.drafts && steps[k].rows > 0; ++k) {
    TRY_ASSIGN(const std::vector<Draft> drafts,
               assistant_->draft(*this, {.token = timeline_[position + k],
                                         .position = position,
                                         .hidden = hidden,
                                         .steps = 1,
                                         .logits = sampled}));
    const Draft& draft = drafts.front();
    const uint32_t token =
        sampled ? ops::sample_reference(request_.sampling, request_.biases,
                                        std::span(timeline_).first(position + k + 1), draft.logits)
                : draft.token;
    ops::draft_reference(k, {&token, 1}, {}, script_, request_.stop_ids, step_, steps, timeline_);
    hidden = draft.hidden;
  }
  return {};
}

Result<void> ReferenceSequence::script(std::span<const uint32_t> drafts) {
  TRY(check_script(capacity_, drafts));
  script_.assign(drafts.begin(), drafts.end());
  return {};
}

Result<void> ReferenceSequence::prefill(uint32_t position, std::span<const uint32_t> ids,
                                        const Request& request) {
  TRY(check_ids_fit(config_, capacity_, position, ids));
  TRY(check_start(config_, capacity_, position, written_));
  TRY(check_request(config_, request));
  rounds_.clear();
  std::copy(ids.begin(), ids.end(), timeline_.begin() + position);
  request_ = request;
  const uint32_t end = position + static_cast<uint32_t>(ids.size());
  written_ = position == 0 ? end : std::max(written_, end);
  step_ = {.position = end - 1, .rows = 1, .remaining = request.max_tokens};
  for (uint32_t begin = position; begin < end;) {
    const uint32_t count = std::min(capacity_.input_bound, end - begin);
    Rows rows = inputs(begin, count);
    for (uint32_t i = 0; i < config_.owning_layers(); ++i) layer(i, rows);
    begin += count;
    if (begin < end) continue;
    keep_last_row(rows);
    for (uint32_t i = config_.owning_layers(); i < config_.layers.size(); ++i) layer(i, rows);
    round(rows);
  }
  return {};
}

Result<void> ReferenceSequence::decode(bool with_drafts) {
  if (step_.rounds == 0)
    return fail(ErrorCode::invalid_argument, "decode needs a prefill before it");
  if (with_drafts) TRY(check_drafting(capacity_));
  if (step_.rows == 0) {
    rounds_.push_back(std::nullopt);
    return {};
  }
  if (with_drafts) TRY(draft());
  Rows rows = inputs(step_.position, step_.rows);
  written_ = std::max(written_, step_.position + step_.rows);
  for (uint32_t i = 0; i < config_.layers.size(); ++i) layer(i, rows);
  round(rows);
  return {};
}

Result<std::optional<Round>> ReferenceSequence::harvest(bool) {
  if (rounds_.empty()) return std::nullopt;
  const std::optional<Round> round = rounds_.front();
  rounds_.pop_front();
  if (round) TRY(check_round(config_, *round));
  return round;
}

Result<void> ReferenceSequence::score(std::span<const uint32_t> ids, const LogitsSink& sink,
                                      const Trace& trace) {
  TRY(check_ids_fit(config_, capacity_, 0, ids));
  rounds_.clear();
  step_ = {};
  written_ = static_cast<uint32_t>(ids.size());
  std::copy(ids.begin(), ids.end(), timeline_.begin());
  const auto observe = [&](std::string_view what, uint32_t first_row, const Floats& values) {
    if (trace) trace(what, first_row, values);
  };
  const uint32_t end = static_cast<uint32_t>(ids.size());
  for (uint32_t begin = 0; begin < end;) {
    Rows rows = inputs(begin, std::min(capacity_.input_bound, end - begin));
    observe("embed", begin, rows.h);
    if (config_.per_layer_input > 0) observe("per_layer_inputs", begin, rows.per_layer_inputs);
    for (uint32_t i = 0; i < config_.layers.size(); ++i) {
      layer(i, rows);
      observe(fmt::format("layer{}", i), begin, rows.h);
    }
    observe("final", begin, activations("embedding", rows.normed));
    TRY(sink(begin, head(rows)));
    begin += rows.count;
  }
  return {};
}

Result<KvRows> ReferenceSequence::kv(uint32_t layer, uint32_t begin, uint32_t end) {
  TRY(check_kv_range(config_, capacity_, layer, begin, end));
  const ops::HostKvCache ring = cache(layer);
  const spec::Layer& shape = config_.layers[config_.layers[layer].kv_layer];
  return unroll_kv(ring.keys, ring.values, ring.slots, size_t{shape.kv_heads} * shape.head_dim,
                   begin, end);
}

}  // namespace

Result<std::unique_ptr<Reference>> Reference::open(const spec::Config& config,
                                                   const TensorTypes& types,
                                                   const Capacity& capacity,
                                                   const spec::AssistantConfig* assistant) {
  TRY(check_capacity(config, capacity));
  TRY_ASSIGN(HostWeights weights, HostWeights::make(spec::tensors(config), types));
  std::unique_ptr<Reference> reference(new Reference(config, capacity, std::move(weights)));
  if (capacity.drafts == 0) return reference;
  if (!assistant) {
    return fail(ErrorCode::invalid_argument, "{} drafts in a round need an assistant",
                capacity.drafts);
  }
  TRY_ASSIGN(reference->assistant_, AssistantReference::open(*assistant, types, *reference));
  return reference;
}

Reference::Reference(const spec::Config& config, const Capacity& capacity, HostWeights weights)
    : config_(config), capacity_(capacity), weights_(std::move(weights)) {}

Reference::~Reference() = default;

Result<void> Reference::write(std::string_view plane, uint64_t offset,
                              std::span<const std::byte> bytes) {
  if (assistant_ && spec::is_assistants(plane)) return assistant_->write(plane, offset, bytes);
  return weights_.write(plane, offset, bytes);
}

Result<std::unique_ptr<Sequence>> Reference::new_sequence() { return hidden_sequence(); }

Result<std::unique_ptr<HiddenSequence>> Reference::hidden_sequence() {
  return std::unique_ptr<HiddenSequence>(new ReferenceSequence(*this));
}

}  // namespace tandem::model
