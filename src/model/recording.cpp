#include "model/recording.h"

#include <cmath>
#include <numbers>

#include "base/error.h"
#include "ops/accept/accept.h"
#include "ops/add_norm/add_norm.h"
#include "ops/argmax/argmax.h"
#include "ops/draft/draft.h"
#include "ops/embedding/embedding.h"
#include "ops/per_layer_gate/per_layer_gate.h"
#include "ops/per_layer_input/per_layer_input.h"
#include "ops/qkv_rope/qkv_rope.h"
#include "ops/quantize/quantize.h"
#include "ops/rms_norm/rms_norm.h"
#include "ops/sample/sample.h"
#include "ops/slice/slice.h"

namespace tandem::model {
namespace {

// Buffers that hold something else at other times (plan.cpp).
constexpr std::string_view per_layer_table = "qkv", per_layer_context = "q", mlp_inside = "q";

}  // namespace

Recording::Recording(gpu::Device& device, const spec::Config& config, const Plan& plan,
                     const DeviceWeights& weights, const Buffers& scratch, const Buffers& sequence,
                     Suit suit)
    : device_(device),
      config_(config),
      plan_(plan),
      weights_(weights),
      scratch_(scratch),
      sequence_(sequence),
      suit_(std::move(suit)) {}

gpu::View Recording::view(const RowSet& rows, std::string_view buffer) const {
  return scratch_.find(fmt::format("{}.{}", rows.name, buffer))->second.view();
}

gpu::View Recording::step(const RowSet& rows) const {
  return sequence_.find(rows.step)->second.view();
}

bool Recording::is_int8(const ops::Matrix& weights) const {
  return plan_.capacity.activations == ops::Activations::int8 && ops::takes_int8(weights.type);
}

ops::RowFormat Recording::row_format(const RowSet& rows, const ops::Matrix& weights) const {
  if (is_int8(weights)) return ops::RowFormat::int8;
  return rows.linear != ops::RowRoute::many && ops::has_units(weights.columns)
             ? ops::RowFormat::lanes
             : ops::RowFormat::columns;
}

ops::KvCache Recording::kv(uint32_t layer) const {
  const uint32_t owner = config_.layers[layer].kv_layer;
  return {plan_.capacity.kv, kv_slots(config_, config_.layers[owner], plan_.capacity),
          sequence_.find(fmt::format("layers.{}.keys", owner))->second.view(),
          sequence_.find(fmt::format("layers.{}.values", owner))->second.view()};
}

const ops::Matrix& Recording::weights(uint32_t layer, std::string_view tensor) const {
  return weights_.matrix(fmt::format("layers.{}.{}", layer, tensor));
}

gpu::View Recording::vector(uint32_t layer, std::string_view tensor) const {
  return weights_.vector(fmt::format("layers.{}.{}", layer, tensor));
}

gpu::View Recording::scalar(uint32_t layer) const {
  return config_.scales_layers() ? vector(layer, "scalar") : gpu::View{};
}

gpu::View Recording::next_norm(uint32_t layer) const {
  return layer + 1 < config_.layers.size() ? vector(layer + 1, "attention_norm")
                                           : weights_.vector("final_norm");
}

const ops::Matrix& Recording::next_matrix(uint32_t layer) const {
  return layer + 1 < config_.layers.size() ? weights(layer + 1, "qkv")
                                           : weights_.matrix("embedding");
}

Result<void> Recording::linear(gpu::CommandList& commands, const RowSet& rows,
                               const Product& product) {
  ops::Linear op{.weights = product.weights,
                 .epilogue = product.epilogue,
                 .rows = rows.linear,
                 .softcap = static_cast<float>(config_.softcap.value_or(0)),
                 .few_rows = std::max(2u, plan_.capacity.drafts + 1),
                 .step = step(rows),
                 .x = product.x,
                 .x_format = product.x_format,
                 .times = product.times,
                 .y = product.y,
                 .max_rows = rows.max_rows};
  if (ops::writes(op, product.y_format)) op.y_format = product.y_format;
  if (op.rows != ops::RowRoute::many) TRY(suit_(op));
  TRY(ops::record(commands, op));
  if (op.y_format == product.y_format) return {};
  return quantize(commands, rows, ops::outputs(op), op.y);
}

Result<void> Recording::quantize(gpu::CommandList& commands, const RowSet& rows, uint32_t columns,
                                 gpu::View x) {
  return ops::record(
      commands,
      ops::Quantize{.columns = columns, .step = step(rows), .x = x, .max_rows = rows.max_rows});
}

Result<void> Recording::add_norm(gpu::CommandList& commands, const RowSet& rows,
                                 const Residual& residual) {
  const auto& [x, weight, scalar, earlier, earlier_weight, next, matrix] = residual;
  return ops::record(commands, ops::AddNorm{.columns = config_.hidden,
                                            .epsilon = static_cast<float>(config_.rms_norm_epsilon),
                                            .step = step(rows),
                                            .x = x,
                                            .weight = weight,
                                            .scalar = scalar,
                                            .earlier = earlier,
                                            .earlier_weight = earlier_weight,
                                            .h = view(rows, "h"),
                                            .next_weight = next,
                                            .y = view(rows, "normed"),
                                            .y_format = matrix ? row_format(rows, *matrix)
                                                               : ops::RowFormat::columns,
                                            .max_rows = rows.max_rows});
}

Result<gpu::CommandList> Recording::inputs(const RowSet& rows, uint32_t layers) {
  gpu::CommandList commands(device_);
  TRY(ops::record(commands, ops::Embedding{.table = weights_.matrix("embedding"),
                                           .columns = config_.hidden,
                                           .scale = std::sqrt(static_cast<float>(config_.hidden)),
                                           .step = step(rows),
                                           .timeline = sequence_.find("timeline")->second.view(),
                                           .y = view(rows, "h"),
                                           .max_rows = rows.max_rows}));
  if (config_.per_layer_input > 0 && layers > 0) TRY(per_layer_inputs(commands, rows, layers));
  const ops::RowFormat format = row_format(rows, weights(0, "qkv"));
  TRY(ops::record(commands, ops::RmsNorm{.columns = config_.hidden,
                                         .epsilon = static_cast<float>(config_.rms_norm_epsilon),
                                         .step = step(rows),
                                         .x = view(rows, "h"),
                                         .weight = vector(0, "attention_norm"),
                                         .y = view(rows, "normed"),
                                         .y_in_lanes = format == ops::RowFormat::lanes,
                                         .max_rows = rows.max_rows}));
  if (format == ops::RowFormat::int8) {
    TRY(quantize(commands, rows, config_.hidden, view(rows, "normed")));
  }
  return commands;
}

Result<void> Recording::per_layer_inputs(gpu::CommandList& commands, const RowSet& rows,
                                         uint32_t layers) {
  const uint32_t width = config_.per_layer_input;
  const ops::Matrix& table = weights_.matrix("per_layer_embedding");
  TRY(ops::record(commands, ops::Embedding{.table = table,
                                           .columns = layers * width,
                                           .scale = std::sqrt(static_cast<float>(width)),
                                           .step = step(rows),
                                           .timeline = sequence_.find("timeline")->second.view(),
                                           .y = view(rows, per_layer_table),
                                           .max_rows = rows.max_rows}));
  const ops::Matrix projection = weights_.matrix("per_layer_projection").first_rows(layers * width);
  TRY(linear(commands, rows,
             {.weights = projection, .x = view(rows, "h"), .y = view(rows, per_layer_context)}));
  return ops::record(
      commands,
      ops::PerLayerInput{.layers = layers,
                         .width = width,
                         .context_stride = layers * width,
                         .table_stride = layers * width,
                         .context_scale = 1 / std::sqrt(static_cast<float>(config_.hidden)),
                         .epsilon = static_cast<float>(config_.rms_norm_epsilon),
                         .step = step(rows),
                         .context = view(rows, per_layer_context),
                         .table = view(rows, per_layer_table),
                         .weight = weights_.vector("per_layer_norm"),
                         .y = view(rows, "per_layer_inputs"),
                         .layer_stride = per_layer_stride(config_, rows.max_rows),
                         .max_rows = rows.max_rows});
}

Result<gpu::CommandList> Recording::layers(const RowSet& rows, uint32_t begin, uint32_t end) {
  gpu::CommandList commands(device_);
  for (uint32_t layer = begin; layer < end; ++layer) {
    TRY(attention(commands, rows, layer));
    TRY(mlp(commands, rows, layer));
    if (config_.per_layer_input > 0) TRY(per_layer(commands, rows, layer));
  }
  return commands;
}

Result<void> Recording::attention(gpu::CommandList& commands, const RowSet& rows, uint32_t layer) {
  const spec::Layer& shape = config_.layers[layer];
  const bool owns_kv = !config_.shares_kv(layer);
  const ops::Matrix& qkv = weights(layer, "qkv");
  const ops::Matrix& output = weights(layer, "attention_output");
  TRY(linear(commands, rows,
             {.weights = qkv,
              .x = view(rows, "normed"),
              .x_format = row_format(rows, qkv),
              .y = view(rows, "qkv")}));
  const bool split = rows.attention == ops::AttentionRoute::split;
  // In attention itself, which does not scale them.
  const bool turns_queries = split && !owns_kv && config_.query_scale() == 1;
  const auto epsilon = static_cast<float>(config_.rms_norm_epsilon);
  const gpu::View angles =
      scratch_.find(fmt::format("angles.{}", angles_of(plan_, shape)))->second.view();
  if (!turns_queries) {
    TRY(ops::record(commands,
                    ops::QkvRope{.heads = config_.heads,
                                 .kv_heads = shape.kv_heads,
                                 .head_dim = shape.head_dim,
                                 .rotated_pairs = shape.rope.rotated_pairs,
                                 .owns_kv = owns_kv,
                                 .key_is_value = shape.key_is_value,
                                 .norms_values = config_.norms_values(),
                                 .query_scale = static_cast<float>(config_.query_scale()),
                                 .epsilon = epsilon,
                                 .step = step(rows),
                                 .qkv = view(rows, "qkv"),
                                 .q_norm = vector(layer, "q_norm"),
                                 .k_norm = owns_kv ? vector(layer, "k_norm") : gpu::View{},
                                 .angles = angles,
                                 .q = view(rows, "q"),
                                 .kv = owns_kv ? kv(layer) : ops::KvCache{},
                                 .max_rows = rows.max_rows}));
  }
  ops::Attention op{.heads = config_.heads,
                    .kv_heads = shape.kv_heads,
                    .head_dim = shape.head_dim,
                    .window = shape.kind == spec::LayerKind::sliding ? config_.window : 0,
                    .positions = plan_.capacity.context,
                    .route = rows.attention,
                    .step = step(rows),
                    .q = view(rows, turns_queries ? "qkv" : "q"),
                    .rope = {},
                    .kv = kv(layer),
                    .partials = split ? view(rows, "attention_partials") : gpu::View{},
                    .y = view(rows, "attended"),
                    .max_rows = rows.max_rows};
  if (turns_queries) {
    op.rope = {.rotated_pairs = shape.rope.rotated_pairs,
               .epsilon = epsilon,
               .q_norm = vector(layer, "q_norm"),
               .angles = angles};
  }
  const ops::RowFormat format = is_int8(output) ? ops::RowFormat::int8 : ops::RowFormat::columns;
  if (ops::writes_int8(op)) op.y_format = format;
  TRY(ops::record(commands, op));
  if (op.y_format != format) TRY(quantize(commands, rows, output.columns, op.y));
  TRY(linear(commands, rows,
             {.weights = output, .x = op.y, .x_format = format, .y = view(rows, "delta")}));
  return add_norm(commands, rows,
                  {.x = view(rows, "delta"),
                   .weight = vector(layer, "post_attention_norm"),
                   .next = vector(layer, "mlp_norm"),
                   .matrix = &weights(layer, "gate_up")});
}

Result<void> Recording::mlp(gpu::CommandList& commands, const RowSet& rows, uint32_t layer) {
  const ops::Matrix& gate_up = weights(layer, "gate_up");
  const ops::Matrix& down = weights(layer, "down");
  const ops::RowFormat inside = row_format(rows, down);
  TRY(linear(commands, rows,
             {.weights = gate_up,
              .epilogue = ops::Epilogue::gelu_pair,
              .x = view(rows, "normed"),
              .x_format = row_format(rows, gate_up),
              .y = view(rows, mlp_inside),
              .y_format = inside}));
  TRY(linear(commands, rows,
             {.weights = down,
              .x = view(rows, mlp_inside),
              .x_format = inside,
              .y = view(rows, "delta")}));
  if (gates_before_adding(rows, layer)) return {};
  Residual residual{.x = view(rows, "delta"), .weight = vector(layer, "post_mlp_norm")};
  // The per-layer part, where there is one, ends the layer instead.
  if (config_.per_layer_input == 0) end_layer(layer, residual);
  return add_norm(commands, rows, residual);
}

void Recording::end_layer(uint32_t layer, Residual& residual) const {
  residual.scalar = scalar(layer);
  residual.next = next_norm(layer);
  residual.matrix = &next_matrix(layer);
}

// Whether the MLP's branch is added to h together with the per-layer input's.
bool Recording::gates_before_adding(const RowSet& rows, uint32_t layer) const {
  return config_.per_layer_input > 0 && rows.linear != ops::RowRoute::many &&
         ops::takes_per_layer_gate(weights(layer, "per_layer_gate"));
}

Result<void> Recording::per_layer(gpu::CommandList& commands, const RowSet& rows, uint32_t layer) {
  const uint64_t stride = uint64_t{per_layer_stride(config_, rows.max_rows)} * sizeof(float);
  const uint64_t bytes = uint64_t{rows.max_rows} * config_.per_layer_input * sizeof(float);
  const gpu::View inputs = view(rows, "per_layer_inputs").part(layer * stride, bytes);
  const ops::Matrix& gate = weights(layer, "per_layer_gate");
  const bool gates_before = gates_before_adding(rows, layer);
  if (gates_before) {
    TRY(ops::record(commands,
                    ops::PerLayerGate{.weights = gate,
                                      .epsilon = static_cast<float>(config_.rms_norm_epsilon),
                                      .step = step(rows),
                                      .h = view(rows, "h"),
                                      .delta = view(rows, "delta"),
                                      .weight = vector(layer, "post_mlp_norm"),
                                      .times = inputs,
                                      .y = view(rows, "per_layer_gate"),
                                      .max_rows = rows.max_rows}));
  } else {
    TRY(linear(commands, rows,
               {.weights = gate,
                .epilogue = ops::Epilogue::gelu_times,
                .x = view(rows, "h"),
                .times = inputs,
                .y = view(rows, "per_layer_gate")}));
  }
  TRY(linear(commands, rows,
             {.weights = weights(layer, "per_layer_output"),
              .x = view(rows, "per_layer_gate"),
              .y = view(rows, "per_layer_delta")}));
  Residual residual{.x = view(rows, "per_layer_delta"),
                    .weight = vector(layer, "post_per_layer_norm")};
  if (gates_before) {
    residual.earlier = view(rows, "delta");
    residual.earlier_weight = vector(layer, "post_mlp_norm");
  }
  end_layer(layer, residual);
  return add_norm(commands, rows, residual);
}

Result<gpu::CommandList> Recording::head(const RowSet& rows) {
  gpu::CommandList commands(device_);
  const ops::Matrix& table = weights_.matrix("embedding");
  TRY(linear(commands, rows,
             {.weights = table,
              .epilogue = config_.softcap ? ops::Epilogue::softcap : ops::Epilogue::none,
              .x = view(rows, "normed"),
              .x_format = row_format(rows, table),
              .y = view(rows, "logits")}));
  return commands;
}

Result<gpu::CommandList> Recording::last_row(const RowSet& from, const RowSet& to) {
  gpu::CommandList commands(device_);
  const uint32_t last_owning = config_.owning_layers() - 1;
  const bool in_lanes = row_format(to, next_matrix(last_owning)) == ops::RowFormat::lanes;
  for (std::string_view buffer : {"h", "normed"}) {
    TRY(ops::record(commands, ops::Slice{.x_stride = config_.hidden,
                                         .columns = config_.hidden,
                                         .rows = ops::SliceRows::last,
                                         .step = step(from),
                                         .x = view(from, buffer),
                                         .y = view(to, buffer),
                                         .y_in_lanes = buffer == "normed" && in_lanes,
                                         .max_rows = from.max_rows}));
  }
  return commands;
}

Result<void> Recording::argmax(gpu::CommandList& commands, const RowSet& rows) {
  return ops::record(commands, ops::Argmax{.columns = config_.vocabulary,
                                           .step = step(rows),
                                           .logits = view(rows, "logits"),
                                           .partials = view(rows, "argmax_partials"),
                                           .index = view(rows, "token"),
                                           .max_rows = rows.max_rows});
}

Result<void> Recording::sample(gpu::CommandList& commands, const RowSet& rows) {
  return ops::record(commands,
                     ops::Sample{.columns = config_.vocabulary,
                                 .context = plan_.capacity.context,
                                 .step = step(rows),
                                 .logits = view(rows, "logits"),
                                 .timeline = sequence_.find("timeline")->second.view(),
                                 .settings = sequence_.find("sample_settings")->second.view(),
                                 .biases = sequence_.find("biases")->second.view(),
                                 .keys = view(rows, "sample_keys"),
                                 .state = view(rows, "sample_state"),
                                 .partials = view(rows, "sample_partials"),
                                 .index = view(rows, "token"),
                                 .max_rows = rows.max_rows});
}

Result<gpu::CommandList> Recording::next_token(const RowSet& rows, bool sampled) {
  gpu::CommandList commands(device_);
  TRY(sampled ? sample(commands, rows) : argmax(commands, rows));
  TRY(ops::record(commands, ops::Accept{.context = plan_.capacity.context,
                                        .drafts = rows.max_rows - 1,
                                        .columns = config_.vocabulary,
                                        .step = step(rows),
                                        .targets = view(rows, "token"),
                                        .logits = view(rows, "logits"),
                                        .stop_ids = sequence_.find("stop_ids")->second.view(),
                                        .timeline = sequence_.find("timeline")->second.view(),
                                        .record = sequence_.find("record")->second.view()}));
  if (plan_.capacity.drafts == 0) return commands;
  TRY(ops::record(commands,
                  ops::DraftInput{.drafts = plan_.capacity.drafts,
                                  .context = plan_.capacity.context,
                                  .table = weights_.matrix("embedding"),
                                  .scale = std::sqrt(static_cast<float>(config_.hidden)),
                                  .step = step(rows),
                                  .timeline = sequence_.find("timeline")->second.view(),
                                  .x = view(rows, "normed"),
                                  .x_format = row_format(rows, weights_.matrix("embedding")),
                                  .y = sequence_.find("draft_input")->second.view(),
                                  .draft_steps = sequence_.find("draft_steps")->second.view(),
                                  .max_rows = rows.max_rows}));
  return commands;
}

}  // namespace tandem::model
