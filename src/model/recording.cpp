#include "model/recording.h"

#include <cmath>
#include <numbers>

#include "base/error.h"
#include "ops/accept/accept.h"
#include "ops/add_norm/add_norm.h"
#include "ops/argmax/argmax.h"
#include "ops/draft/draft.h"
#include "ops/embedding/embedding.h"
#include "ops/linear_norm/linear_norm.h"
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
constexpr std::string_view per_layer_table = "qkv", projected = "q", mlp_inside = "q";

}  // namespace

Recording::Recording(gpu::Device& device, const spec::Config& config, const Plan& plan,
                     const DeviceWeights& weights, const Buffers& scratch, const Buffers& sequence,
                     Suit suit, bool leaves_steps)
    : device_(device),
      config_(config),
      plan_(plan),
      weights_(weights),
      scratch_(scratch),
      sequence_(sequence),
      suit_(std::move(suit)),
      leaves_steps_(leaves_steps) {}

gpu::View Recording::view(const RowSet& rows, std::string_view buffer) const {
  return scratch_.find(fmt::format("{}.{}", rows.name, buffer))->second.view();
}

gpu::View Recording::h(const RowSet& rows) const {
  return view(rows, rows.linear == ops::RowRoute::many ? "h" : h_);
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

Result<ops::Linear> Recording::multiplication(const RowSet& rows, const Product& product,
                                              TakenStep step) {
  ops::Linear op{.weights = product.weights,
                 .epilogue = product.epilogue,
                 .rows = rows.linear,
                 .softcap = static_cast<float>(config_.softcap.value_or(0)),
                 .few_rows = std::max(2u, plan_.capacity.drafts + 1),
                 .step = this->step(rows),
                 .x = product.x,
                 .x_format = product.x_format,
                 .times = product.times,
                 .y = product.y,
                 .max_rows = rows.max_rows};
  if (ops::writes(op, product.y_format)) op.y_format = product.y_format;
  if (op.rows != ops::RowRoute::many) TRY(suit_(op, step));
  return op;
}

Result<ops::RowFormat> Recording::linear(gpu::CommandList& commands, const RowSet& rows,
                                         const Product& product) {
  const TakenStep step = left_ ? left_->taken() : TakenStep::none;
  TRY_ASSIGN(const ops::Linear op, multiplication(rows, product, step));
  if (left_) {
    TRY(ops::record(commands,
                    ops::LinearNorm{.product = op,
                                    .epsilon = static_cast<float>(config_.rms_norm_epsilon),
                                    .stream = view(rows, h_),
                                    .branch = ops::branch_begin(config_.hidden),
                                    .weight = left_->weight,
                                    .scalar = left_->scalar,
                                    .next_weight = left_->next,
                                    .next_h = view(rows, next_h_)}));
    std::swap(h_, next_h_);
    left_.reset();
  } else {
    TRY(ops::record(commands, op));
  }
  if (op.y_format == product.y_format || product.y_format != ops::RowFormat::int8) {
    return op.y_format;
  }
  TRY(quantize(commands, rows, ops::outputs(op), op.y));
  return ops::RowFormat::int8;
}

Result<void> Recording::quantize(gpu::CommandList& commands, const RowSet& rows, uint32_t columns,
                                 gpu::View x) {
  return ops::record(
      commands,
      ops::Quantize{.columns = columns, .step = step(rows), .x = x, .max_rows = rows.max_rows});
}

Result<void> Recording::branch(gpu::CommandList& commands, const RowSet& rows, Product product,
                               const Step& step, const std::optional<Product>& next) {
  bool is_left = false;
  if (next && leaves_steps_) {
    TRY_ASSIGN(const ops::Linear op, multiplication(rows, *next, step.taken()));
    is_left = ops::takes_norm(op);
  }
  product.y = view(rows, "delta");
  if (is_left) {
    const uint64_t begin = ops::branch_begin(config_.hidden) * sizeof(float);
    product.y = h(rows).part(begin, config_.hidden * sizeof(float));
  }
  TRY(linear(commands, rows, product));
  if (is_left) {
    left_ = step;
    return {};
  }
  return ops::record(commands, ops::AddNorm{.columns = config_.hidden,
                                            .epsilon = static_cast<float>(config_.rms_norm_epsilon),
                                            .step = this->step(rows),
                                            .x = product.y,
                                            .weight = step.weight,
                                            .scalar = step.scalar,
                                            .h = h(rows),
                                            .next_weight = step.next,
                                            .y = view(rows, "normed"),
                                            .y_format = step.matrix ? row_format(rows, *step.matrix)
                                                                    : ops::RowFormat::columns,
                                            .max_rows = rows.max_rows});
}

Result<gpu::CommandList> Recording::inputs(const RowSet& rows, uint32_t layers) {
  gpu::CommandList commands(device_);
  if (rows.linear != ops::RowRoute::many) h_ = "h", next_h_ = "other_h";
  TRY(ops::record(commands, ops::Embedding{.table = weights_.matrix("embedding"),
                                           .columns = config_.hidden,
                                           .scale = std::sqrt(static_cast<float>(config_.hidden)),
                                           .step = step(rows),
                                           .timeline = sequence_.find("timeline")->second.view(),
                                           .y = h(rows),
                                           .max_rows = rows.max_rows}));
  // Neighbours that do not wait for each other run side by side.
  const bool per_layer = config_.per_layer_input > 0 && layers > 0;
  const ops::RowFormat format = row_format(rows, weights(0, "qkv"));
  if (per_layer) TRY(per_layer_context(commands, rows, layers));
  TRY(ops::record(commands, ops::RmsNorm{.columns = config_.hidden,
                                         .epsilon = static_cast<float>(config_.rms_norm_epsilon),
                                         .step = step(rows),
                                         .x = h(rows),
                                         .weight = vector(0, "attention_norm"),
                                         .y = view(rows, "normed"),
                                         .y_in_lanes = format == ops::RowFormat::lanes,
                                         .max_rows = rows.max_rows}));
  if (per_layer) TRY(per_layer_inputs(commands, rows, layers));
  if (format == ops::RowFormat::int8) {
    TRY(quantize(commands, rows, config_.hidden, view(rows, "normed")));
  }
  return commands;
}

Result<void> Recording::per_layer_context(gpu::CommandList& commands, const RowSet& rows,
                                          uint32_t layers) {
  const uint32_t width = config_.per_layer_input;
  TRY(ops::record(commands, ops::Embedding{.table = weights_.matrix("per_layer_embedding"),
                                           .columns = layers * width,
                                           .scale = std::sqrt(static_cast<float>(width)),
                                           .step = step(rows),
                                           .timeline = sequence_.find("timeline")->second.view(),
                                           .y = view(rows, per_layer_table),
                                           .max_rows = rows.max_rows}));
  const ops::Matrix projection = weights_.matrix("per_layer_projection").first_rows(layers * width);
  TRY(linear(commands, rows, {.weights = projection, .x = h(rows), .y = view(rows, projected)}));
  return {};
}

Result<void> Recording::per_layer_inputs(gpu::CommandList& commands, const RowSet& rows,
                                         uint32_t layers) {
  const uint32_t width = config_.per_layer_input;
  return ops::record(
      commands,
      ops::PerLayerInput{.layers = layers,
                         .width = width,
                         .context_stride = layers * width,
                         .table_stride = layers * width,
                         .context_scale = 1 / std::sqrt(static_cast<float>(config_.hidden)),
                         .epsilon = static_cast<float>(config_.rms_norm_epsilon),
                         .step = step(rows),
                         .context = view(rows, projected),
                         .table = view(rows, per_layer_table),
                         .weight = weights_.vector("per_layer_norm"),
                         .y = view(rows, "per_layer_inputs"),
                         .layer_stride = per_layer_stride(config_, rows.max_rows),
                         .max_rows = rows.max_rows});
}

Result<gpu::CommandList> Recording::layers(const RowSet& rows, uint32_t begin, uint32_t end) {
  gpu::CommandList commands(device_);
  for (uint32_t layer = begin; layer < end; ++layer) {
    const auto next = layer + 1 < end ? std::optional(qkv(rows, layer + 1)) : std::nullopt;
    TRY(attention(commands, rows, layer));
    TRY(mlp(commands, rows, layer, next));
    if (config_.per_layer_input > 0) TRY(per_layer(commands, rows, layer, next));
  }
  return commands;
}

Result<void> Recording::attention(gpu::CommandList& commands, const RowSet& rows, uint32_t layer) {
  const spec::Layer& shape = config_.layers[layer];
  const bool owns_kv = !config_.shares_kv(layer);
  const ops::Matrix& output = weights(layer, "attention_output");
  TRY(linear(commands, rows, qkv(rows, layer)));
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
  return branch(commands, rows, {.weights = output, .x = op.y, .x_format = format},
                {.weight = vector(layer, "post_attention_norm"),
                 .next = vector(layer, "mlp_norm"),
                 .matrix = &weights(layer, "gate_up")},
                gate_up(rows, layer));
}

Recording::Product Recording::qkv(const RowSet& rows, uint32_t layer) const {
  const ops::Matrix& qkv = weights(layer, "qkv");
  return {.weights = qkv,
          .x = view(rows, "normed"),
          .x_format = row_format(rows, qkv),
          .y = view(rows, "qkv")};
}

Recording::Product Recording::gate_up(const RowSet& rows, uint32_t layer) const {
  const ops::Matrix& gate_up = weights(layer, "gate_up");
  return {.weights = gate_up,
          .epilogue = ops::Epilogue::gelu_pair,
          .x = view(rows, "normed"),
          .x_format = row_format(rows, gate_up),
          .y = view(rows, mlp_inside),
          .y_format = row_format(rows, weights(layer, "down"))};
}

Result<void> Recording::mlp(gpu::CommandList& commands, const RowSet& rows, uint32_t layer,
                            const std::optional<Product>& next) {
  const Product inside = gate_up(rows, layer);
  TRY_ASSIGN(const ops::RowFormat format, linear(commands, rows, inside));
  Product down{.weights = weights(layer, "down"), .x = inside.y, .x_format = format};
  if (config_.per_layer_input == 0) {
    return branch(commands, rows, down, last_step(layer, "post_mlp_norm"), next);
  }
  if (!gates_before_adding(rows, layer)) {
    return branch(commands, rows, down, {.weight = vector(layer, "post_mlp_norm")}, {});
  }
  down.y = view(rows, "delta");
  TRY(linear(commands, rows, down));
  return {};
}

Recording::Step Recording::last_step(uint32_t layer, std::string_view norm) const {
  return {.weight = vector(layer, norm),
          .scalar = scalar(layer),
          .next = next_norm(layer),
          .matrix = &next_matrix(layer)};
}

// Whether the per-layer input's gate adds the MLP's branch to h.
bool Recording::gates_before_adding(const RowSet& rows, uint32_t layer) const {
  return config_.per_layer_input > 0 && rows.linear != ops::RowRoute::many &&
         ops::takes_per_layer_gate(weights(layer, "per_layer_gate"));
}

Result<void> Recording::per_layer(gpu::CommandList& commands, const RowSet& rows, uint32_t layer,
                                  const std::optional<Product>& next) {
  const uint64_t stride = uint64_t{per_layer_stride(config_, rows.max_rows)} * sizeof(float);
  const uint64_t bytes = uint64_t{rows.max_rows} * config_.per_layer_input * sizeof(float);
  const gpu::View inputs = view(rows, "per_layer_inputs").part(layer * stride, bytes);
  const ops::Matrix& gate = weights(layer, "per_layer_gate");
  if (gates_before_adding(rows, layer)) {
    TRY(ops::record(commands,
                    ops::PerLayerGate{.weights = gate,
                                      .epsilon = static_cast<float>(config_.rms_norm_epsilon),
                                      .step = step(rows),
                                      .h = h(rows),
                                      .delta = view(rows, "delta"),
                                      .weight = vector(layer, "post_mlp_norm"),
                                      .times = inputs,
                                      .sum = view(rows, next_h_),
                                      .y = view(rows, "per_layer_gate"),
                                      .max_rows = rows.max_rows}));
    std::swap(h_, next_h_);
  } else {
    TRY(linear(commands, rows,
               {.weights = gate,
                .epilogue = ops::Epilogue::gelu_times,
                .x = h(rows),
                .times = inputs,
                .y = view(rows, "per_layer_gate")}));
  }
  return branch(commands, rows,
                {.weights = weights(layer, "per_layer_output"), .x = view(rows, "per_layer_gate")},
                last_step(layer, "post_per_layer_norm"), next);
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
  const auto slice = [&](gpu::View x, gpu::View y, bool y_in_lanes) {
    return ops::record(commands, ops::Slice{.x_stride = config_.hidden,
                                            .columns = config_.hidden,
                                            .rows = ops::SliceRows::last,
                                            .step = step(from),
                                            .x = x,
                                            .y = y,
                                            .y_in_lanes = y_in_lanes,
                                            .max_rows = from.max_rows});
  };
  TRY(slice(h(from), h(to), false));
  TRY(slice(view(from, "normed"), view(to, "normed"), in_lanes));
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
