#include "model/plan.h"

#include <algorithm>

#include "base/error.h"
#include "model/build.h"
#include "ops/accept/accept.h"
#include "ops/argmax/argmax.h"
#include "ops/attention/attention.h"
#include "ops/draft/draft.h"
#include "ops/linear_norm/linear_norm.h"
#include "ops/sample/sample.h"
#include "ops/top_k/top_k.h"

namespace tandem::model {
namespace {

// Rows of a part are a multiple of this, so that the outputs of parts keep the binding alignment
// and packed pairs of scales are never cut. Rows that are interleaved yield one output together.
uint32_t part_granule(const spec::Tensor& tensor) {
  constexpr uint32_t outputs = 64;
  return tensor.join == spec::Join::interleave
             ? outputs * static_cast<uint32_t>(tensor.sources.size())
             : outputs;
}

uint64_t total(const std::vector<PlannedBuffer>& buffers) {
  uint64_t sum = 0;
  for (const PlannedBuffer& buffer : buffers) sum += buffer.bytes;
  return sum;
}

uint64_t aligned(uint64_t bytes) { return (bytes + 3) / 4 * 4; }

template <class Value>
uint64_t largest(const spec::Config& config, uint32_t layers, Value value) {
  uint64_t most = 0;
  for (uint32_t i = 0; i < layers; ++i) most = std::max<uint64_t>(most, value(config.layers[i]));
  return most;
}

// A single row has a branch behind it, for kernels that read both.
uint64_t h_floats(const spec::Config& config, uint64_t rows) {
  return std::max(rows * config.hidden, ops::branch_begin(config.hidden) + config.hidden);
}

// The buffers of `rows` rows on their way through the first `layers` layers. What is not needed at
// the same time shares one: before the layers, "qkv" and "q" hold what the per-layer inputs are
// made of, and in a layer "q" the queries and then what is between the MLP's matrices.
void plan_rows(const spec::Config& config, std::string_view set, uint64_t rows, uint32_t layers,
               std::vector<PlannedBuffer>& buffers) {
  auto add = [&](std::string_view name, uint64_t floats) {
    buffers.push_back({fmt::format("{}.{}", set, name), floats * 4});
  };
  const uint64_t q_width =
      largest(config, layers, [&](const spec::Layer& l) { return config.heads * l.head_dim; });
  add("h", h_floats(config, rows));
  add("normed", rows * config.hidden);
  add("delta", rows * config.hidden);
  const uint64_t qkv_width = largest(config, layers, [&](const spec::Layer& l) {
    return (config.heads + 2 * l.kv_heads) * l.head_dim;
  });
  const uint64_t mlp_width =
      largest(config, layers, [](const spec::Layer& l) { return l.intermediate; });
  const uint64_t per_layer_width = uint64_t{layers} * config.per_layer_input;
  add("qkv", rows * std::max(qkv_width, per_layer_width));
  add("q", rows * std::max({q_width, mlp_width, per_layer_width}));
  add("attended", rows * q_width);
  if (config.per_layer_input > 0) {
    add("per_layer_inputs",
        uint64_t{layers} * per_layer_stride(config, static_cast<uint32_t>(rows)));
    add("per_layer_gate", rows * config.per_layer_input);
  }
}

// The partial results of attention by splits. Rows that lag look one position further back.
uint64_t partials_bytes(const spec::Config& config, uint32_t context, uint32_t rows, uint32_t lag) {
  uint64_t bytes = 4;
  for (const spec::Layer& layer : config.layers) {
    const ops::Attention shape{
        .heads = config.heads,
        .kv_heads = layer.kv_heads,
        .head_dim = layer.head_dim,
        .window = layer.kind == spec::LayerKind::sliding ? config.window + lag : 0,
        .lag = lag,
        .positions = context,
        .max_rows = rows};
    bytes = std::max(bytes, ops::attention_partials_bytes(shape));
  }
  return bytes;
}

// What the assistant computes a draft with.
void plan_draft(const spec::AssistantConfig& assistant, Plan& plan) {
  const spec::Config& text = assistant.text;
  const uint32_t layers = static_cast<uint32_t>(text.layers.size());
  std::vector<PlannedBuffer>& buffers = plan.scratch;
  const uint64_t q_width =
      largest(text, layers, [&](const spec::Layer& layer) { return text.heads * layer.head_dim; });
  const uint64_t mlp_width =
      largest(text, layers, [](const spec::Layer& layer) { return layer.intermediate; });
  buffers.push_back({"draft.h", uint64_t{text.hidden} * 4});
  buffers.push_back({"draft.normed", uint64_t{text.hidden} * 4});
  buffers.push_back({"draft.delta", uint64_t{text.hidden} * 4});
  buffers.push_back({"draft.q", q_width * 4});
  buffers.push_back({"draft.attended", q_width * 4});
  buffers.push_back({"draft.mlp", mlp_width * 4});
  buffers.push_back(
      {"draft.attention_partials", partials_bytes(text, plan.capacity.context, 1, 1)});
  if (assistant.ordered) {
    const auto& [centroids, top_k] = *assistant.ordered;
    const uint32_t scored = top_k * (text.vocabulary / centroids);
    buffers.push_back({"draft.centroids", uint64_t{centroids} * 4});
    buffers.push_back({"draft.top_values", uint64_t{top_k} * 4});
    buffers.push_back({"draft.top", uint64_t{top_k} * 4});
    buffers.push_back({"draft.scores", uint64_t{scored} * 4});
    buffers.push_back({"draft.scored", uint64_t{scored} * 4});
    const ops::TopK op{.columns = centroids, .k = top_k, .max_rows = 1};
    buffers.push_back({"draft.top_partials", std::max<uint64_t>(ops::top_k_partials_bytes(op), 4)});
  }
  buffers.push_back({"draft.logits", uint64_t{text.vocabulary} * 4});
  buffers.push_back({"draft.argmax_partials", ops::argmax_partials_bytes(text.vocabulary, 1)});
  buffers.push_back({"draft.token", 4});
}

void plan_scratch(const spec::Config& config, Plan& plan) {
  const uint32_t rows = plan.capacity.drafts + 1;
  const uint32_t layers = static_cast<uint32_t>(config.layers.size());
  std::vector<PlannedBuffer>& buffers = plan.scratch;
  for (size_t i = 0; i < plan.angles.size(); ++i) {
    const uint64_t pairs = std::max(plan.angles[i].rope.rotated_pairs, 1u);
    buffers.push_back({fmt::format("angles.{}", i), plan.capacity.context * pairs * 8});
  }
  plan_rows(config, "row", rows, layers, buffers);
  buffers.push_back({"row.other_h", h_floats(config, rows) * 4});
  buffers.push_back(
      {"row.attention_partials", partials_bytes(config, plan.capacity.context, rows, 0)});
  buffers.push_back({"row.logits", uint64_t{rows} * config.vocabulary * 4});
  buffers.push_back({"row.argmax_partials", ops::argmax_partials_bytes(config.vocabulary, rows)});
  buffers.push_back({"row.sample_keys", ops::sample_keys_bytes(config.vocabulary, rows)});
  buffers.push_back({"row.sample_state", ops::sample_state_bytes(rows)});
  buffers.push_back({"row.sample_partials", ops::sample_partials_bytes(config.vocabulary, rows)});
  buffers.push_back({"row.token", uint64_t{rows} * 4});
  plan_rows(config, "chunk", plan.capacity.input_bound, config.owning_layers(), buffers);
  plan_rows(config, "score", plan.score_rows, layers, buffers);
  buffers.push_back({"score.logits", uint64_t{plan.score_rows} * config.vocabulary * 4});
}

void plan_sequence(const spec::Config& config, Plan& plan) {
  const Capacity& capacity = plan.capacity;
  const uint64_t value_bytes = capacity.kv == ops::KvType::f16 ? 2 : 4;
  for (uint32_t i = 0; i < config.owning_layers(); ++i) {
    const spec::Layer& layer = config.layers[i];
    const uint64_t bytes =
        uint64_t{kv_slots(config, layer, capacity)} * layer.kv_heads * layer.head_dim * value_bytes;
    plan.sequence.push_back({fmt::format("layers.{}.keys", i), bytes});
    plan.sequence.push_back({fmt::format("layers.{}.values", i), bytes});
  }
  plan.sequence.push_back({"timeline", (uint64_t{capacity.context} + 1) * 4});
  plan.sequence.push_back({"stop_ids", (max_stop_ids + 1) * 4});
  plan.sequence.push_back({"sample_settings", sizeof(ops::SampleSettings)});
  plan.sequence.push_back({"biases", max_biases * sizeof(TokenBias)});
  plan.sequence.push_back({"step", sizeof(ops::Step)});
  plan.sequence.push_back({"record", sizeof(ops::RoundRecord)});
  plan.sequence.push_back({"chunk_step", sizeof(ops::Step)});
  if (capacity.drafts == 0) return;
  plan.sequence.push_back({"draft_steps", capacity.drafts * ops::draft_step_bytes});
  plan.sequence.push_back({"draft_input", uint64_t{2} * config.hidden * 4});
  if (capacity.scripted) plan.sequence.push_back({"script", (uint64_t{capacity.context} + 1) * 4});
}

Result<void> plan_weights(const std::vector<spec::Tensor>& tensors, const TensorTypes& types,
                          const gpu::Limits& limits, Plan& plan) {
  const uint64_t limit = std::min(limits.max_binding_bytes, limits.max_buffer_bytes);
  for (const spec::Tensor& tensor : tensors) {
    const auto type = types.find(tensor.name);
    if (type == types.end()) {
      return fail(ErrorCode::not_found, "tensor {}: the artifact gives it no type", tensor.name);
    }
    const std::vector<spec::PlaneLayout> layout = spec::planes(type->second, tensor.columns);
    if (layout.empty()) {
      return fail(ErrorCode::bad_value,
                  "tensor {}: {} columns cannot be stored as {}; use f16 or f32", tensor.name,
                  tensor.columns, spec::name(type->second));
    }
    uint64_t row_bytes = 0;
    for (const spec::PlaneLayout& plane : layout)
      row_bytes = std::max(row_bytes, plane.bytes_per_row);
    uint64_t rows = std::min<uint64_t>(tensor.rows, limit / row_bytes);
    if (rows < tensor.rows) rows = rows / part_granule(tensor) * part_granule(tensor);
    if (rows == 0) {
      return fail(
          ErrorCode::limit_exceeded,
          "tensor {}: {} rows of {} bytes are the smallest part, the adapter binds {} bytes",
          tensor.name, std::min(part_granule(tensor), tensor.rows), row_bytes, limit);
    }
    const PlannedTensor planned{tensor, type->second, static_cast<uint32_t>(rows)};
    for (uint32_t part = 0; part < planned.parts(); ++part) {
      const uint64_t part_rows = std::min<uint64_t>(rows, tensor.rows - part * rows);
      for (const spec::PlaneLayout& plane : layout) {
        plan.weights.push_back(
            {part_name(tensor.name, plane.suffix, part), aligned(part_rows * plane.bytes_per_row)});
      }
    }
    plan.tensors.push_back(planned);
  }
  return {};
}

void plan_angles(const spec::Config& config, Plan& plan) {
  for (const spec::Layer& layer : config.layers) {
    const PlannedAngles angles{layer.rope, layer.head_dim};
    if (angles_of(plan, layer) == plan.angles.size()) plan.angles.push_back(angles);
  }
}

Result<void> check_limits(const Plan& plan, const gpu::Limits& limits) {
  const uint64_t limit = std::min(limits.max_binding_bytes, limits.max_buffer_bytes);
  for (const auto* buffers : {&plan.weights, &plan.scratch, &plan.sequence}) {
    for (const PlannedBuffer& buffer : *buffers) {
      if (buffer.bytes > limit) {
        return fail(
            ErrorCode::limit_exceeded,
            "buffer {} needs {} bytes, the adapter allows {}; lower the context ({}) or the "
            "input bound ({})",
            buffer.name, buffer.bytes, limit, plan.capacity.context, plan.capacity.input_bound);
      }
      TRY(gpu::check_indexable(buffer.bytes / 4));
    }
  }
  return {};
}

}  // namespace

uint64_t Plan::weight_bytes() const { return total(weights); }
uint64_t Plan::scratch_bytes() const { return total(scratch); }
uint64_t Plan::sequence_bytes() const { return total(sequence); }

std::string part_name(std::string_view tensor, std::string_view plane, uint32_t part) {
  return fmt::format("{}.{}.{}", tensor, plane, part);
}

uint32_t angles_of(const Plan& plan, const spec::Layer& layer) {
  const auto found =
      std::find(plan.angles.begin(), plan.angles.end(), PlannedAngles{layer.rope, layer.head_dim});
  return static_cast<uint32_t>(found - plan.angles.begin());
}

uint32_t kv_slots(const spec::Config& config, const spec::Layer& layer, const Capacity& capacity) {
  if (layer.kind == spec::LayerKind::full) return capacity.context;
  const uint64_t ahead = uint64_t{capacity.drafts + 1} * capacity.rounds_in_flight;
  const uint64_t ring =
      uint64_t{config.window} + 1 + std::max<uint64_t>(capacity.input_bound, ahead);
  return static_cast<uint32_t>(std::min<uint64_t>(ring, capacity.context));
}

uint32_t per_layer_stride(const spec::Config& config, uint32_t rows) {
  constexpr uint32_t alignment = 256 / sizeof(float);
  return (rows * config.per_layer_input + alignment - 1) / alignment * alignment;
}

Result<Plan> make_plan(const spec::Config& config, const spec::AssistantConfig* assistant,
                       const TensorTypes& types, const Capacity& capacity,
                       const gpu::Limits& limits) {
  TRY(check_capacity(config, capacity));
  if (capacity.drafts == 0) assistant = nullptr;
  Plan plan;
  plan.capacity = capacity;
  plan.capacity.input_bound = std::min(capacity.input_bound, capacity.context);
  // A band's logits must fit a binding; beyond 32 rows a band costs more memory than it saves time.
  const uint64_t logits_rows = std::min(limits.max_binding_bytes, limits.max_buffer_bytes) /
                               (uint64_t{config.vocabulary} * 4);
  plan.score_rows = static_cast<uint32_t>(
      std::clamp<uint64_t>(logits_rows, 1, std::min(32u, plan.capacity.input_bound)));
  plan_angles(config, plan);
  TRY(plan_weights(spec::tensors(config), types, limits, plan));
  if (assistant) {
    plan_angles(assistant->text, plan);
    TRY(plan_weights(spec::tensors(*assistant), types, limits, plan));
  }
  plan_scratch(config, plan);
  if constexpr (has_mtp) {
    if (assistant) plan_draft(*assistant, plan);
  }
  plan_sequence(config, plan);
  TRY(check_limits(plan, limits));
  return plan;
}

}  // namespace tandem::model
