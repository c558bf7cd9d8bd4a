// An open engine and its figures: the public API over model, text and artifact.
#include "tandem/engine.h"

#include "engine/state.h"

namespace tandem {
namespace {

double share(uint32_t part, uint32_t whole) {
  return whole > 0 ? static_cast<double>(part) / whole : 0;
}

}  // namespace

Engine::Engine(std::unique_ptr<State> state) : state_(std::move(state)) {}
Engine::Engine(Engine&&) noexcept = default;
Engine& Engine::operator=(Engine&&) noexcept = default;
Engine::~Engine() = default;

const EngineInfo& Engine::info() const { return state_->info; }

Result<std::vector<uint32_t>> Engine::encode(std::string_view text) const {
  return state_->prompts.encode(text);
}

Result<std::vector<uint32_t>> Engine::encode_chat(std::span<const Message> messages) const {
  return state_->prompts.encode_chat(messages);
}

std::string_view name(StopReason reason) {
  switch (reason) {
    case StopReason::stop_id:
      return "stop_id";
    case StopReason::stop_string:
      return "stop_string";
    case StopReason::length:
      return "length";
    case StopReason::context:
      return "context";
    case StopReason::aborted:
      return "aborted";
  }
  return "";
}

double GenerateStats::prefill_tokens_per_second() const {
  return first_token_ms > 0 ? (prompt_tokens - reused_tokens) * 1e3 / first_token_ms : 0;
}

double GenerateStats::acceptance() const {
  return share(accepted[0] + accepted[1], drafted[0] + drafted[1]);
}

double GenerateStats::acceptance(size_t place) const {
  return share(accepted[place], drafted[place]);
}

double GenerateStats::tokens_per_round() const {
  return rounds > 1 ? share(generated_tokens - 1, rounds - 1) : 0;
}

double GenerateStats::decode_tokens_per_second() const {
  return generated_tokens > 1 && decode_ms > 0 ? (generated_tokens - 1) * 1e3 / decode_ms : 0;
}

}  // namespace tandem
