// Opens the model of an artifact where the options say: a target on a GPU device, or the reference.
#pragma once

#include <memory>
#include <optional>

#include "artifact/artifact.h"
#include "artifact/provenance.h"
#include "gpu/device.h"
#include "model/model.h"
#include "model/target.h"
#include "tandem/engine.h"

namespace tandem::engine {

struct OpenedModel {
  std::unique_ptr<gpu::Device> device;  // none on the CPU
  std::unique_ptr<model::Model> model;  // its weights still to be loaded
  model::Target* target = nullptr;      // the model, where it is on a device
};

struct OpenedArtifact {
  artifact::Artifact artifact;
  artifact::Provenance provenance;
};

// With the view that the options need, with the assistant or without; refused if it is not verified
// and the options want that.
Result<OpenedArtifact> open_artifact(const std::filesystem::path& folder,
                                     const EngineOptions& options);

// What measurements and tests need, and cost.
struct Instruments {
  bool timed = false;     // each dispatch, on a GPU
  bool scripted = false;  // drafts, where there is an assistant (model::Capacity)
};

Result<OpenedModel> open_model(const artifact::Artifact& artifact, const EngineOptions& options,
                               const Instruments& instruments = {});

// The same on a device that is open already.
Result<OpenedModel> open_target(const artifact::Artifact& artifact, const EngineOptions& options,
                                std::unique_ptr<gpu::Device> device,
                                const Instruments& instruments = {});

// Verifies and writes all weights.
Result<void> load_weights(const artifact::Artifact& artifact, model::Model& model,
                          const EngineOptions& options);

// The types that an artifact's recipe gave its tensors.
model::TensorTypes tensor_types(const artifact::Manifest& manifest);
// Those that the options keep off.
Result<gpu::Tiers> disabled_tiers(const EngineOptions& options);
// What a model may run: the options over the artifact's bounds.
Result<model::Capacity> capacity(const artifact::Manifest& manifest, const EngineOptions& options);
// None without the view mtp.
const spec::AssistantConfig* assistant(const artifact::Manifest& manifest);

// What the model would need on a device with these limits; opens none.
Result<model::Plan> plan_model(const artifact::Artifact& artifact, const EngineOptions& options,
                               const gpu::Limits& limits);

// All of EngineInfo but the times and the provenance.
EngineInfo describe(const artifact::Artifact& artifact, const OpenedModel& opened);

}  // namespace tandem::engine
