// Opening an artifact in a folder.
#include "base/clock.h"
#include "base/error.h"
#include "engine/opening.h"
#include "engine/tuning.h"
#include "tandem/engine.h"

namespace tandem {

Result<Engine> engine::open(const std::string& folder, const EngineOptions& options,
                            const Instruments& instruments) {
  TRY_ASSIGN(const engine::OpenedArtifact source, engine::open_artifact(folder, options));
  const artifact::Artifact& artifact = source.artifact;
  TRY_ASSIGN(engine::Texts texts, engine::open_texts(artifact));
  TRY_ASSIGN(engine::OpenedModel opened, engine::open_model(artifact, options, instruments));
  const double load_start = now_ms();
  TRY(engine::load_weights(artifact, *opened.model, options));
  const double load_ms = now_ms() - load_start;
  TRY(engine::tune(opened, options));
  engine::Opening opening(artifact, std::move(texts), std::move(opened));
  TRY(opening.prepare(true));
  return std::move(opening).engine(load_ms, name(source.provenance.state));
}

Result<Engine> Engine::open(const std::string& folder, const EngineOptions& options) {
  return engine::open(folder, options, {});
}

}  // namespace tandem
