#include "spec/pair.h"

#include "base/error.h"

namespace tandem::spec {
namespace {

template <class T>
Result<void> expect_equal(std::string_view where, std::string_view what, const T& target,
                          const T& assistant) {
  if (target == assistant) return {};
  return fail(ErrorCode::bad_value,
              "{}: the assistant does not fit the target: {}: the target has {}, the assistant {}",
              where, what, target, assistant);
}

Result<void> check_donor(const Config& target, const Layer& reader, std::string_view where) {
  const std::optional<uint32_t> donor = target.donor(reader.kind);
  if (!donor) {
    return fail(ErrorCode::bad_value,
                "{}: the assistant does not fit the target: it has {} layers, the target none that "
                "own K/V",
                where, name(reader.kind));
  }
  const Layer& layer = target.layers[*donor];
  const auto expect = [&](std::string_view field, const auto& in_target, const auto& in_reader) {
    return expect_equal(
        where, fmt::format("{} of {} (the target's layer {})", field, name(reader.kind), *donor),
        in_target, in_reader);
  };
  TRY(expect("KV heads", layer.kv_heads, reader.kv_heads));
  TRY(expect("head_dim", layer.head_dim, reader.head_dim));
  TRY(expect("rope_theta", layer.rope.theta, reader.rope.theta));
  return expect("rotated pairs", layer.rope.rotated_pairs, reader.rope.rotated_pairs);
}

}  // namespace

Result<void> check_pair(const Config& target, const AssistantConfig& assistant,
                        std::string_view where) {
  TRY(expect_equal(where, "model family", name(target.family), name(assistant.text.family)));
  TRY(expect_equal(where, "hidden_size and backbone_hidden_size", target.hidden,
                   assistant.backbone_hidden));
  TRY(expect_equal(where, "vocab_size", target.vocabulary, assistant.text.vocabulary));
  for (const Layer& layer : assistant.text.layers) TRY(check_donor(target, layer, where));
  if (assistant.text.window > target.window) {
    return fail(
        ErrorCode::unsupported,
        "{}: sliding_window: the assistant's {} is wider than the target's {}, whose KV goes "
        "no further back",
        where, assistant.text.window, target.window);
  }
  if (assistant.text.max_positions < target.max_positions) {
    return fail(ErrorCode::unsupported,
                "{}: max_position_embeddings: the assistant's {} are fewer than the target's {}",
                where, assistant.text.max_positions, target.max_positions);
  }
  return {};
}

}  // namespace tandem::spec
