#include "engine/open_model.h"

#include <algorithm>

#include "base/error.h"
#include "model/reference.h"

namespace tandem::engine {
namespace {

class ModelSink : public artifact::WeightSink {
 public:
  explicit ModelSink(model::Model& model) : model_(model) {}
  Result<void> write(std::string_view plane, uint64_t offset,
                     std::span<const std::byte> bytes) override {
    return model_.write(plane, offset, bytes);
  }

 private:
  model::Model& model_;
};

}  // namespace

Result<OpenedArtifact> open_artifact(const std::filesystem::path& folder,
                                     const EngineOptions& options) {
  const auto plain = std::optional(artifact::View::plain);
  TRY_ASSIGN(artifact::Artifact artifact,
             artifact::Artifact::open(folder, options.drafts == 0u ? plain : std::nullopt,
                                      options.assistant));
  TRY_ASSIGN(const std::vector<artifact::Pins> pins, artifact::known_pins(options.sources));
  artifact::Provenance provenance = artifact::provenance(artifact.receipt(), pins);
  if (options.require_verified) TRY(artifact::require_verified(provenance, folder.string()));
  return OpenedArtifact{std::move(artifact), std::move(provenance)};
}

Result<OpenedModel> open_model(const artifact::Artifact& artifact, const EngineOptions& options,
                               const Instruments& instruments) {
  OpenedModel opened;
  if (options.place == Place::cpu) {
    TRY_ASSIGN(model::Capacity bounds, capacity(artifact.manifest(), options));
    bounds.scripted = instruments.scripted && bounds.drafts > 0;
    TRY_ASSIGN(opened.model,
               model::Reference::open(artifact.config(), tensor_types(artifact.manifest()), bounds,
                                      assistant(artifact.manifest())));
    return opened;
  }
  TRY_ASSIGN(const gpu::Tiers disabled, disabled_tiers(options));
  // The engine runs its own kernels only, whose indices are inside by their shapes and clamps.
  TRY_ASSIGN(opened.device,
             gpu::Device::open(
                 {.adapter = options.adapter, .disabled = disabled, .bounds_checks = false}));
  return open_target(artifact, options, std::move(opened.device), instruments);
}

Result<void> load_weights(const artifact::Artifact& artifact, model::Model& model,
                          const EngineOptions& options) {
  ModelSink sink(model);
  return artifact::load(artifact, sink, options.on_load);
}

}  // namespace tandem::engine
