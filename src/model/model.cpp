#include "model/model.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "model/plan.h"
#include "ops/sample/sample.h"

namespace tandem::model {
namespace {

tl::unexpected<Error> not_finite(uint32_t position) {
  return fail(ErrorCode::not_finite,
              "the logits at position {} are not finite: the weights are not usable, or the driver "
              "is at fault; try --device cpu, and export the model again",
              position);
}

}  // namespace

Result<std::unique_ptr<Sequence>> Model::sequence() {
  TRY_ASSIGN(std::unique_ptr<Sequence> sequence, new_sequence());
  TRY(sequence->prepare(true));
  return sequence;
}

Result<void> check_capacity(const spec::Config& config, const Capacity& capacity) {
  if (capacity.context == 0 || capacity.context > config.max_positions) {
    return fail(ErrorCode::invalid_argument, "context {}: the model has positions 1 to {}",
                capacity.context, config.max_positions);
  }
  if (capacity.input_bound == 0 || capacity.rounds_in_flight == 0) {
    return fail(ErrorCode::invalid_argument,
                "input bound {} and rounds in flight {}: both must be at least 1",
                capacity.input_bound, capacity.rounds_in_flight);
  }
  if (capacity.drafts > most_drafts) {
    return fail(ErrorCode::invalid_argument, "{} drafts in a round: at most {} can be verified",
                capacity.drafts, most_drafts);
  }
  return {};
}

Result<void> check_request(const spec::Config& config, const Request& request) {
  if (request.max_tokens == 0 || request.stop_ids.size() > max_stop_ids) {
    return fail(ErrorCode::invalid_argument,
                "{} tokens and {} stop ids: at least 1 token and at most {} stop ids",
                request.max_tokens, request.stop_ids.size(), max_stop_ids);
  }
  TRY(check_sampling(request.sampling));
  return ops::check_biases(request.biases, config.vocabulary);
}

Result<void> check_ids_fit(const spec::Config& config, const Capacity& capacity, uint32_t position,
                           std::span<const uint32_t> ids) {
  const uint64_t end = uint64_t{position} + ids.size();
  if (ids.empty()) return fail(ErrorCode::invalid_argument, "no token ids to run");
  if (end > capacity.context) {
    return fail(
        ErrorCode::context_exceeded,
        "{} tokens at position {} need a context of {}, it is {}; raise the context or shorten "
        "the text",
        ids.size(), position, end, capacity.context);
  }
  const auto unknown =
      std::find_if(ids.begin(), ids.end(), [&](uint32_t id) { return id >= config.vocabulary; });
  if (unknown != ids.end()) {
    return fail(ErrorCode::malformed_text, "token id {} at [{}]: the vocabulary has {} ids",
                *unknown, unknown - ids.begin(), config.vocabulary);
  }
  return {};
}

bool kept(const spec::Config& config, const Capacity& capacity, uint32_t position,
          uint32_t written) {
  if (position > written) return false;
  return std::all_of(config.layers.begin(), config.layers.end(), [&](const spec::Layer& layer) {
    const uint64_t slots = kv_slots(config, layer, capacity);
    return slots >= written || position + slots >= uint64_t{written} + config.window;
  });
}

Result<void> check_drafting(const Capacity& capacity) {
  if (capacity.drafts > 0) return {};
  return fail(
      ErrorCode::invalid_argument,
      "the model was opened without an assistant to draft; turn MTP off, or open an artifact "
      "that has one, with drafts");
}

Result<void> check_script(const Capacity& capacity, std::span<const uint32_t> drafts) {
  TRY(check_drafting(capacity));
  if (capacity.scripted && drafts.size() == size_t{capacity.context} + 1) return {};
  return fail(ErrorCode::invalid_argument,
              "a script of {} drafts: expected a model opened for scripts, and {} positions",
              drafts.size(), capacity.context + 1);
}

Result<void> check_round(const spec::Config& config, const Round& round) {
  const auto wrong = [&](std::string_view what) {
    return fail(ErrorCode::internal,
                "round {} at position {}: {}; the driver may be at fault: try another adapter, and "
                "please report this",
                round.number, round.position, what);
  };
  if (round.rows == 0 || round.rows > ops::max_drafts + 1 || round.count == 0 ||
      round.count > round.accepted + 1) {
    return wrong(fmt::format("{} rows gave {} tokens", round.rows, round.count));
  }
  if (const uint32_t accepted = ops::accepted_drafts(round); accepted != round.accepted) {
    return wrong(fmt::format("{} drafts were accepted, {} agree", round.accepted, accepted));
  }
  for (uint32_t row = 0; row < round.rows; ++row) {
    if (round.targets[row] >= config.vocabulary) {
      return wrong(
          fmt::format("token {} of a vocabulary of {}", round.targets[row], config.vocabulary));
    }
    if (!std::isfinite(round.logits[row])) {
      return not_finite(round.position + row);
    }
  }
  return {};
}

Result<void> check_finite(std::span<const float> logits, uint32_t first_row, uint32_t vocabulary) {
  const auto bad =
      std::find_if(logits.begin(), logits.end(), [](float logit) { return !std::isfinite(logit); });
  if (bad == logits.end()) return {};
  return not_finite(first_row + static_cast<uint32_t>((bad - logits.begin()) / vocabulary));
}

Result<void> check_start(const spec::Config& config, const Capacity& capacity, uint32_t position,
                         uint32_t written) {
  if (position == 0 || kept(config, capacity, position, written)) return {};
  return fail(ErrorCode::invalid_argument,
              "position {}: the KV before it is not kept, {} positions were written; start at 0",
              position, written);
}

Result<void> check_kv_range(const spec::Config& config, const Capacity& capacity, uint32_t layer,
                            uint32_t begin, uint32_t end) {
  if (layer < config.layers.size()) {
    const uint32_t slots = kv_slots(config, config.layers[config.layers[layer].kv_layer], capacity);
    if (begin <= end && end - begin <= slots && end <= capacity.context) return {};
  }
  return fail(ErrorCode::invalid_argument, "KV positions {} to {} of layer {}: not kept", begin,
              end, layer);
}

KvRows unroll_kv(std::span<const float> keys, std::span<const float> values, uint32_t slots,
                 size_t width, uint32_t begin, uint32_t end) {
  KvRows rows;
  for (uint32_t position = begin; position < end; ++position) {
    const size_t slot = position % slots * width;
    rows.keys.insert(rows.keys.end(), keys.begin() + slot, keys.begin() + slot + width);
    rows.values.insert(rows.values.end(), values.begin() + slot, values.begin() + slot + width);
  }
  return rows;
}

}  // namespace tandem::model
