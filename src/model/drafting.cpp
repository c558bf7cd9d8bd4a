#include "model/drafting.h"

#include <cmath>

#include "base/error.h"
#include "ops/add_norm/add_norm.h"
#include "ops/argmax/argmax.h"
#include "ops/attention/attention.h"
#include "ops/draft/draft.h"
#include "ops/embedding/embedding.h"
#include "ops/gathered_linear/gathered_linear.h"
#include "ops/linear_add_norm/linear_add_norm.h"
#include "ops/linear_top_k/linear_top_k.h"
#include "ops/rms_norm/rms_norm.h"
#include "ops/row_product.h"
#include "ops/sample/sample.h"
#include "ops/scatter/scatter.h"
#include "ops/top_k/top_k.h"

namespace tandem::model {

gpu::View Drafting::view(std::string_view buffer) const {
  return scratch_.find(fmt::format("draft.{}", buffer))->second.view();
}

gpu::View Drafting::row(std::string_view buffer) const {
  return scratch_.find(fmt::format("row.{}", buffer))->second.view();
}

gpu::View Drafting::sequence(std::string_view buffer) const {
  return sequence_.find(buffer)->second.view();
}

gpu::View Drafting::step(uint32_t draft) const {
  return sequence("draft_steps").part(draft * ops::draft_step_bytes, sizeof(ops::Step));
}

gpu::View Drafting::vector(uint32_t layer, std::string_view tensor) const {
  return weights_.vector(fmt::format("assistant.layers.{}.{}", layer, tensor));
}

gpu::View Drafting::embedded() const {
  return sequence("draft_input").part(0, uint64_t{target_.hidden} * sizeof(float));
}

gpu::View Drafting::hidden() const {
  const uint64_t bytes = uint64_t{target_.hidden} * sizeof(float);
  return sequence("draft_input").part(bytes, bytes);
}

Result<void> Drafting::linear(gpu::CommandList& commands, std::string_view tensor,
                              ops::Epilogue epilogue, gpu::View x, gpu::View y) {
  ops::Linear op{.weights = weights_.matrix(fmt::format("assistant.{}", tensor)),
                 .epilogue = epilogue,
                 .rows = ops::RowRoute::one,
                 .softcap = static_cast<float>(assistant_.text.softcap.value_or(0)),
                 .step = step(0),
                 .x = x,
                 .times = {},
                 .y = y,
                 .max_rows = 1};
  cut_(op);
  return ops::record(commands, op);
}

Result<void> Drafting::linear_add_norm(gpu::CommandList& commands, std::string_view tensor,
                                       gpu::View x, gpu::View weight, gpu::View scalar,
                                       gpu::View next) {
  const ops::Matrix& weights = weights_.matrix(fmt::format("assistant.{}", tensor));
  const auto epsilon = static_cast<float>(assistant_.text.rms_norm_epsilon);
  if (ops::pays_in_one_workgroup(weights)) {
    return ops::record(commands, ops::LinearAddNorm{.weights = weights,
                                                    .epsilon = epsilon,
                                                    .step = step(0),
                                                    .x = x,
                                                    .weight = weight,
                                                    .scalar = scalar,
                                                    .h = view("h"),
                                                    .next_weight = next,
                                                    .y = view("normed"),
                                                    .max_rows = 1});
  }
  const uint32_t columns = assistant_.text.hidden;
  TRY(linear(commands, tensor, ops::Epilogue::none, x, weight ? view("delta") : view("h")));
  if (!weight) {
    return ops::record(commands, ops::RmsNorm{.columns = columns,
                                              .epsilon = epsilon,
                                              .step = step(0),
                                              .x = view("h"),
                                              .weight = next,
                                              .y = view("normed"),
                                              .max_rows = 1});
  }
  return ops::record(commands, ops::AddNorm{.columns = columns,
                                            .epsilon = epsilon,
                                            .step = step(0),
                                            .x = view("delta"),
                                            .weight = weight,
                                            .scalar = scalar,
                                            .h = view("h"),
                                            .next_weight = next,
                                            .y = view("normed"),
                                            .max_rows = 1});
}

Result<gpu::CommandList> Drafting::drafts(bool sampled) {
  gpu::CommandList commands(device_);
  for (uint32_t draft = 0; draft < plan_.capacity.drafts; ++draft) {
    if (draft > 0) TRY(input(commands, draft));
    TRY(linear_add_norm(commands, "pre_projection", sequence("draft_input"), {}, {},
                        vector(0, "attention_norm")));
    for (uint32_t i = 0; i < assistant_.text.layers.size(); ++i) TRY(layer(commands, i));
    TRY(assistant_.ordered ? ordered_head(commands, draft, sampled)
                           : plain_head(commands, draft, sampled));
  }
  return commands;
}

// The embedding of the draft before, and the assistant's own hidden state.
Result<void> Drafting::input(gpu::CommandList& commands, uint32_t draft) {
  TRY(linear(commands, "post_projection", ops::Epilogue::none, view("normed"), hidden()));
  return ops::record(commands,
                     ops::Embedding{.table = weights_.matrix("embedding"),
                                    .columns = target_.hidden,
                                    .scale = std::sqrt(static_cast<float>(target_.hidden)),
                                    .step = step(draft),
                                    .timeline = sequence("timeline"),
                                    .y = embedded(),
                                    .max_rows = 1});
}

Result<void> Drafting::layer(gpu::CommandList& commands, uint32_t layer) {
  const auto name = [&](std::string_view tensor) {
    return fmt::format("layers.{}.{}", layer, tensor);
  };
  const bool last = layer + 1 == assistant_.text.layers.size();
  TRY(attention(commands, layer));
  TRY(linear_add_norm(commands, name("attention_output"), view("attended"),
                      vector(layer, "post_attention_norm"), {}, vector(layer, "mlp_norm")));
  TRY(linear(commands, name("gate_up"), ops::Epilogue::gelu_pair, view("normed"), view("mlp")));
  return linear_add_norm(
      commands, name("down"), view("mlp"), vector(layer, "post_mlp_norm"), vector(layer, "scalar"),
      last ? weights_.vector("assistant.final_norm") : vector(layer + 1, "attention_norm"));
}

// Queries alone, which look at the KV of the target's donor layer in front of them.
Result<void> Drafting::attention(gpu::CommandList& commands, uint32_t layer) {
  const spec::Config& text = assistant_.text;
  const spec::Layer& shape = text.layers[layer];
  const uint32_t donor = target_.donor(shape.kind).value();
  const std::string angles = fmt::format("angles.{}", angles_of(plan_, shape));
  TRY(linear(commands, fmt::format("layers.{}.qkv", layer), ops::Epilogue::none, view("normed"),
             view("q")));
  const ops::KvCache kv = {plan_.capacity.kv,
                           kv_slots(target_, target_.layers[donor], plan_.capacity),
                           sequence(fmt::format("layers.{}.keys", donor)),
                           sequence(fmt::format("layers.{}.values", donor))};
  return ops::record(
      commands,
      ops::Attention{.heads = text.heads,
                     .kv_heads = shape.kv_heads,
                     .head_dim = shape.head_dim,
                     .window = shape.kind == spec::LayerKind::sliding ? text.window + 1 : 0,
                     .lag = 1,
                     .positions = plan_.capacity.context,
                     .route = ops::AttentionRoute::split,
                     .step = step(0),
                     .q = view("q"),
                     .rope = ops::QueryRope{.rotated_pairs = shape.rope.rotated_pairs,
                                            .epsilon = static_cast<float>(text.rms_norm_epsilon),
                                            .q_norm = vector(layer, "q_norm"),
                                            .angles = scratch_.find(angles)->second.view()},
                     .kv = kv,
                     .partials = view("attention_partials"),
                     .y = view("attended"),
                     .max_rows = 1});
}

Result<void> Drafting::likely_centroids(gpu::CommandList& commands) {
  const auto& [centroids, top_k] = *assistant_.ordered;
  const ops::Matrix& weights = weights_.matrix("assistant.centroids");
  if (ops::pays_in_one_workgroup(weights)) {
    return ops::record(commands, ops::LinearTopK{.weights = weights,
                                                 .k = top_k,
                                                 .step = step(0),
                                                 .x = view("normed"),
                                                 .values = view("top_values"),
                                                 .indices = view("top"),
                                                 .max_rows = 1});
  }
  TRY(linear(commands, "centroids", ops::Epilogue::none, view("normed"), view("centroids")));
  return ops::record(commands, ops::TopK{.columns = centroids,
                                         .k = top_k,
                                         .step = step(0),
                                         .x = view("centroids"),
                                         .partials = view("top_partials"),
                                         .values = view("top_values"),
                                         .indices = view("top"),
                                         .max_rows = 1});
}

// Scores the tokens of the most likely centroids.
Result<void> Drafting::ordered_head(gpu::CommandList& commands, uint32_t draft, bool sampled) {
  const auto& [centroids, top_k] = *assistant_.ordered;
  const uint32_t group = assistant_.text.vocabulary / centroids;
  TRY(likely_centroids(commands));
  TRY(ops::record(commands, ops::GatheredLinear{
                                .weights = weights_.matrix("assistant.embedding"),
                                .groups = centroids,
                                .group_rows = group,
                                .count = top_k,
                                .softcap = static_cast<float>(assistant_.text.softcap.value_or(0)),
                                .step = step(0),
                                .x = view("normed"),
                                .chosen = view("top"),
                                .ordering = weights_.vector("assistant.token_ordering"),
                                .y = view("scores"),
                                .rows = view("scored")}));
  if (!sampled) return take(commands, draft, top_k * group, view("scored"), view("scores"));
  TRY(ops::record(commands, ops::Scatter{.count = top_k * group,
                                         .columns = assistant_.text.vocabulary,
                                         .unique = true,  // the ordering is a permutation
                                         .step = step(0),
                                         .values = view("scores"),
                                         .index = view("scored"),
                                         .y = view("logits"),
                                         .max_rows = 1}));
  return sample(commands, draft);
}

Result<void> Drafting::plain_head(gpu::CommandList& commands, uint32_t draft, bool sampled) {
  const auto epilogue = assistant_.text.softcap ? ops::Epilogue::softcap : ops::Epilogue::none;
  TRY(linear(commands, "embedding", epilogue, view("normed"), view("logits")));
  if (sampled) return sample(commands, draft);
  TRY(ops::record(commands, ops::Argmax{.columns = assistant_.text.vocabulary,
                                        .step = step(draft),
                                        .logits = view("logits"),
                                        .partials = view("argmax_partials"),
                                        .index = view("token"),
                                        .max_rows = 1}));
  return take(commands, draft, 1, view("token"), {});
}

// With the options and the noise of the target's own choice at this position.
Result<void> Drafting::sample(gpu::CommandList& commands, uint32_t draft) {
  TRY(ops::record(commands, ops::Sample{.columns = assistant_.text.vocabulary,
                                        .context = plan_.capacity.context,
                                        .step = step(draft),
                                        .logits = view("logits"),
                                        .timeline = sequence("timeline"),
                                        .settings = sequence("sample_settings"),
                                        .biases = sequence("biases"),
                                        .keys = row("sample_keys"),
                                        .state = row("sample_state"),
                                        .partials = row("sample_partials"),
                                        .index = view("token"),
                                        .max_rows = 1}));
  return take(commands, draft, 1, view("token"), {});
}

Result<void> Drafting::take(gpu::CommandList& commands, uint32_t draft, uint32_t scored,
                            gpu::View tokens, gpu::View scores) {
  return ops::record(
      commands, ops::Draft{.drafts = plan_.capacity.drafts,
                           .index = draft,
                           .context = plan_.capacity.context,
                           .step = sequence("step"),
                           .draft_steps = sequence("draft_steps"),
                           .scored = scored,
                           .tokens = tokens,
                           .scores = scores,
                           .script = plan_.capacity.scripted ? sequence("script") : gpu::View{},
                           .stop_ids = sequence("stop_ids"),
                           .timeline = sequence("timeline")});
}

}  // namespace tandem::model
