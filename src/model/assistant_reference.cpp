#include "model/assistant_reference.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "ops/add_norm/add_norm.h"
#include "ops/argmax/argmax.h"
#include "ops/attention/attention.h"
#include "ops/embedding/embedding.h"
#include "ops/gathered_linear/gathered_linear.h"
#include "ops/linear/linear.h"
#include "ops/qkv_rope/qkv_rope.h"
#include "ops/rms_norm/rms_norm.h"
#include "ops/scatter/scatter.h"
#include "ops/top_k/top_k.h"
#include "spec/pair.h"

namespace tandem::model {
namespace {

std::string name(uint32_t layer, std::string_view tensor) {
  return fmt::format("assistant.layers.{}.{}", layer, tensor);
}

}  // namespace

Result<std::unique_ptr<AssistantReference>> AssistantReference::open(
    const spec::AssistantConfig& config, const TensorTypes& types, const Reference& target) {
  TRY(spec::check_pair(target.config(), config, "assistant"));
  TRY_ASSIGN(HostWeights weights, HostWeights::make(spec::tensors(config), types));
  return std::unique_ptr<AssistantReference>(
      new AssistantReference(config, target, std::move(weights)));
}

Result<std::vector<Draft>> AssistantReference::draft(Sequence& sequence,
                                                     const DraftRequest& request) const {
  TRY(check(request));
  TRY_ASSIGN(Donors read, donors(sequence, request.position));
  std::vector<Draft> drafts;
  uint32_t token = request.token;
  std::span<const float> hidden = request.hidden;
  for (uint32_t step = 0; step < request.steps; ++step) {
    Draft draft;
    draft.input = input(token, hidden);
    const Floats normed = final_normed(draft.input, read, request.position);
    const Scores scores = score(normed);
    const uint32_t scored = static_cast<uint32_t>(scores.logits.size());
    ops::argmax_reference(scored, scores.logits, {&token, 1}, scores.tokens);
    draft.token = token;
    draft.hidden = linear("assistant.post_projection", ops::Epilogue::none, normed);
    if (request.logits) draft.logits = row(scores);
    drafts.push_back(std::move(draft));
    hidden = drafts.back().hidden;
    const std::span<const uint32_t> stops = request.stop_ids;
    if (std::find(stops.begin(), stops.end(), token) != stops.end()) break;
  }
  return drafts;
}

Result<void> AssistantReference::check(const DraftRequest& request) const {
  if (request.token >= config_.text.vocabulary) {
    return fail(ErrorCode::malformed_text, "token id {}: the vocabulary has {} ids", request.token,
                config_.text.vocabulary);
  }
  if (request.position == 0 || request.hidden.size() != config_.backbone_hidden) {
    return fail(ErrorCode::invalid_argument,
                "a draft at position {} from a hidden state of {} values: expected a position from "
                "1 on, and {} values",
                request.position, request.hidden.size(), config_.backbone_hidden);
  }
  return {};
}

// Sliding layers look at distances 1 to window + 1 from the position.
Result<AssistantReference::Donors> AssistantReference::donors(Sequence& sequence,
                                                              uint32_t position) const {
  Donors donors;
  for (const spec::Layer& reader : config_.text.layers) {
    if (donors.contains(reader.kind)) continue;
    const uint32_t reach =
        reader.kind == spec::LayerKind::sliding ? config_.text.window + 1 : position;
    Donor& donor = donors[reader.kind];
    donor.positions = std::min(position, reach);
    TRY_ASSIGN(donor.rows, sequence.kv(target_.config().donor(reader.kind).value(),
                                       position - donor.positions, position));
  }
  return donors;
}

AssistantReference::Floats AssistantReference::input(uint32_t token,
                                                     std::span<const float> hidden) const {
  const uint32_t width = config_.backbone_hidden;
  Floats input(width);
  ops::embedding_reference(target_.weights().matrix("embedding"), width,
                           std::sqrt(static_cast<float>(width)), {&token, 1}, input);
  input.insert(input.end(), hidden.begin(), hidden.end());
  return input;
}

AssistantReference::Floats AssistantReference::final_normed(const Floats& input, Donors& donors,
                                                            uint32_t position) const {
  const spec::Config& text = config_.text;
  Floats h = linear("assistant.pre_projection", ops::Epilogue::none, input);
  Floats normed(h.size());
  ops::rms_norm_reference(text.hidden, text.rms_norm_epsilon, h, vector(0, "attention_norm"),
                          normed);
  const auto add_norm = [&](const Floats& delta, const Floats& weight, float scalar,
                            const Floats& next) {
    ops::add_norm_reference(text.hidden, text.rms_norm_epsilon, delta, weight, scalar, h, next,
                            normed);
  };
  for (uint32_t i = 0; i < text.layers.size(); ++i) {
    const bool last = i + 1 == text.layers.size();
    const Floats attention = attended(i, normed, donors[text.layers[i].kind], position);
    add_norm(linear(name(i, "attention_output"), ops::Epilogue::none, attention),
             vector(i, "post_attention_norm"), 1, vector(i, "mlp_norm"));
    const Floats gated = linear(name(i, "gate_up"), ops::Epilogue::gelu_pair, normed);
    add_norm(linear(name(i, "down"), ops::Epilogue::none, gated), vector(i, "post_mlp_norm"),
             vector(i, "scalar")[0],
             last ? weights_.row("assistant.final_norm") : vector(i + 1, "attention_norm"));
  }
  return normed;
}

AssistantReference::Floats AssistantReference::attended(uint32_t layer, const Floats& normed,
                                                        Donor& donor, uint32_t position) const {
  const spec::Layer& shape = config_.text.layers[layer];
  const uint32_t heads = config_.text.heads;
  Floats q(size_t{heads} * shape.head_dim);
  ops::qkv_rope_reference({.heads = heads,
                           .kv_heads = shape.kv_heads,
                           .head_dim = shape.head_dim,
                           .owns_kv = false,
                           .epsilon = config_.text.rms_norm_epsilon,
                           .rope = shape.rope},
                          position, 1, linear(name(layer, "qkv"), ops::Epilogue::none, normed),
                          vector(layer, "q_norm"), {}, q, {});
  // The donor's rows are all that the window leaves, so that the last of them sees all.
  Floats y(q.size());
  ops::attention_reference(heads, shape.kv_heads, shape.head_dim, 0, donor.positions - 1, 1, q,
                           {ops::KvType::f32, donor.positions, donor.rows.keys, donor.rows.values},
                           y);
  return y;
}

AssistantReference::Scores AssistantReference::score(const Floats& normed) const {
  const spec::Config& text = config_.text;
  Scores scores;
  if (!config_.ordered) {
    const auto epilogue = text.softcap ? ops::Epilogue::softcap : ops::Epilogue::none;
    scores.logits = linear("assistant.embedding", epilogue, normed);
    return scores;
  }
  const auto& [centroids, top_k] = *config_.ordered;
  const uint32_t group = text.vocabulary / centroids;
  std::vector<uint32_t> chosen(top_k);
  Floats largest(top_k);
  ops::top_k_reference(centroids, top_k, linear("assistant.centroids", ops::Epilogue::none, normed),
                       largest, chosen);
  scores.logits.resize(size_t{top_k} * group);
  scores.tokens.resize(scores.logits.size());
  ops::gathered_linear_reference(weights_.matrix("assistant.embedding"), group,
                                 text.softcap.value_or(0), normed, chosen, token_ordering(),
                                 scores.logits, scores.tokens);
  return scores;
}

AssistantReference::Floats AssistantReference::row(const Scores& scores) const {
  if (scores.tokens.empty()) return scores.logits;
  Floats row(config_.text.vocabulary);
  ops::scatter_reference(static_cast<uint32_t>(scores.logits.size()), config_.text.vocabulary, {},
                         scores.logits, scores.tokens, row);
  return row;
}

std::vector<uint32_t> AssistantReference::token_ordering() const {
  const std::span<const std::byte> plane = weights_.matrix("assistant.token_ordering").values;
  std::vector<uint32_t> ordering(config_.text.vocabulary);
  std::memcpy(ordering.data(), plane.data(), plane.size());
  return ordering;
}

AssistantReference::Floats AssistantReference::linear(std::string_view tensor,
                                                      ops::Epilogue epilogue,
                                                      const Floats& x) const {
  const ops::HostMatrix matrix = weights_.matrix(tensor);
  Floats y(epilogue == ops::Epilogue::gelu_pair ? matrix.rows / 2 : matrix.rows);
  ops::linear_reference(matrix, epilogue, config_.text.softcap.value_or(0), 1, x, {}, y);
  return y;
}

AssistantReference::Floats AssistantReference::vector(uint32_t layer,
                                                      std::string_view tensor) const {
  return weights_.row(name(layer, tensor));
}

}  // namespace tandem::model
