// Opens the model of an artifact where the options say: a target on a GPU device, or the reference.
#pragma once

#include <memory>

#include "artifact/artifact.h"
#include "gpu/device.h"
#include "model/model.h"
#include "tandem/engine.h"

namespace tandem::engine {

struct OpenedModel {
  std::unique_ptr<gpu::Device> device;  // none on the CPU
  std::unique_ptr<model::Model> model;  // its weights still to be loaded
};

Result<OpenedModel> open_model(const artifact::Artifact& artifact, const EngineOptions& options);

// The types that an artifact's recipe gave its tensors.
model::TensorTypes tensor_types(const artifact::Manifest& manifest);

// What a model may run: the options over the artifact's bounds.
Result<model::Capacity> capacity(const artifact::Manifest& manifest, const EngineOptions& options);

Result<gpu::DeviceOptions> device_options(const EngineOptions& options);

// All of EngineInfo but the times.
EngineInfo describe(const artifact::Artifact& artifact, const OpenedModel& opened);

}  // namespace tandem::engine
