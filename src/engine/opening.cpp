#include "engine/opening.h"

#include "base/clock.h"
#include "base/error.h"
#include "engine/state.h"

namespace tandem::engine {

Opening::Opening(const artifact::Artifact& artifact, Texts texts, OpenedModel opened)
    : artifact_(&artifact), texts_(std::move(texts)), opened_(std::move(opened)) {}

Result<bool> Opening::prepare(bool wait) {
  if (!first_) {
    prepare_start_ = now_ms();
    TRY_ASSIGN(first_, opened_.model->new_sequence());
  }
  TRY_ASSIGN(const bool done, first_->prepare(wait));
  if (done && prepared_ == 0) prepared_ = now_ms();
  return done;
}

Engine Opening::engine(double load_ms, std::string_view provenance) && {
  EngineInfo info = describe(*artifact_, opened_);
  info.sampling = texts_.defaults.sampling;
  info.provenance = provenance;
  info.load_ms = load_ms;
  info.compile_ms = prepared_ - prepare_start_;
  return Engine(std::unique_ptr<Engine::State>(
      new Engine::State{std::move(opened_), std::move(texts_.prompts), std::move(texts_.defaults),
                        std::move(info), std::move(first_)}));
}

}  // namespace tandem::engine
