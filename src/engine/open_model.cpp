#include "engine/open_model.h"

#include <algorithm>

#include "base/error.h"
#include "model/reference.h"

namespace tandem::engine {
namespace {

// The types that an artifact's recipe gave its tensors.
model::TensorTypes tensor_types(const artifact::Manifest& manifest) {
  model::TensorTypes types;
  for (const artifact::TensorEntry& tensor : manifest.tensors) types[tensor.name] = tensor.type;
  return types;
}

// What a model may run: the options over the artifact's bounds.
Result<model::Capacity> capacity(const artifact::Manifest& manifest, const EngineOptions& options) {
  model::Capacity capacity{
      .context = options.context.value_or(manifest.context_bound),
      .input_bound = options.input_bound.value_or(manifest.input_bound),
      .kv = options.kv == KvPrecision::f16 ? ops::KvType::f16 : ops::KvType::f32,
      // The reference computes a round when it is submitted: running ahead would only delay the
      // text.
      .rounds_in_flight = options.place == Place::cpu ? 1 : options.rounds_in_flight,
      .drafts = options.drafts.value_or(manifest.mtp ? model::most_drafts : 0),
  };
  TRY(model::check_capacity(manifest.config, capacity));
  if (capacity.drafts > 0 && !manifest.mtp) {
    return fail(ErrorCode::invalid_argument,
                "{} drafts in a round: the artifact has no assistant; leave them out, or export "
                "the model with one",
                capacity.drafts);
  }
  return capacity;
}

Result<gpu::DeviceOptions> device_options(const EngineOptions& options) {
  gpu::DeviceOptions device{.adapter = options.adapter};
  for (const std::string& tier : options.disabled_tiers) {
    if (tier == "subgroups") {
      device.disabled.subgroups = true;
    } else if (tier == "dp4a") {
      device.disabled.dp4a = true;
    } else if (tier == "f16") {
      device.disabled.f16 = true;
    } else {
      return fail(ErrorCode::invalid_argument, "tier {}: expected subgroups, dp4a or f16", tier);
    }
  }
  return device;
}

const spec::AssistantConfig* assistant(const artifact::Manifest& manifest) {
  return manifest.mtp ? &manifest.mtp->config : nullptr;
}

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
                               std::optional<gpu::Passes> passes) {
  TRY_ASSIGN(const model::Capacity bounds, capacity(artifact.manifest(), options));
  const model::TensorTypes types = tensor_types(artifact.manifest());
  OpenedModel opened;
  if (options.place == Place::cpu) {
    TRY_ASSIGN(opened.model, model::Reference::open(artifact.config(), types, bounds,
                                                    assistant(artifact.manifest())));
    return opened;
  }
  TRY_ASSIGN(const gpu::DeviceOptions device, device_options(options));
  TRY_ASSIGN(opened.device, gpu::Device::open(device));
  const gpu::Passes asked =
      options.pass_per_dispatch ? gpu::Passes::one_per_dispatch : gpu::Passes::one_per_submission;
  TRY_ASSIGN(std::unique_ptr<model::Target> target,
             model::Target::open(*opened.device, artifact.config(), types,
                                 {.capacity = bounds,
                                  .assistant = assistant(artifact.manifest())
                                                   ? std::optional(artifact.manifest().mtp->config)
                                                   : std::nullopt,
                                  .passes = passes.value_or(asked)}));
  opened.target = target.get();
  opened.model = std::move(target);
  return opened;
}

Result<model::Plan> plan_model(const artifact::Artifact& artifact, const EngineOptions& options,
                               const gpu::Limits& limits) {
  TRY_ASSIGN(const model::Capacity bounds, capacity(artifact.manifest(), options));
  return model::make_plan(artifact.config(), assistant(artifact.manifest()),
                          tensor_types(artifact.manifest()), bounds, limits);
}

Result<void> load_weights(const artifact::Artifact& artifact, model::Model& model,
                          const EngineOptions& options) {
  ModelSink sink(model);
  return artifact::load(artifact, sink, options.on_load);
}

EngineInfo describe(const OpenedArtifact& source, const OpenedModel& opened) {
  const artifact::Artifact& artifact = source.artifact;
  EngineInfo info;
  info.artifact = artifact.digest().hex();
  info.provenance = name(source.provenance.state);
  info.vocabulary = artifact.config().vocabulary;
  info.context = opened.model->capacity().context;
  info.input_bound = opened.model->capacity().input_bound;
  info.drafts = opened.model->capacity().drafts;
  info.weight_bytes = artifact.plan().bytes;
  if (!opened.device) {
    info.adapter = "cpu";
    return info;
  }
  const gpu::AdapterInfo& adapter = opened.device->info();
  info.adapter = adapter.name;
  info.kernel_closure = gpu::closure_digest();
  info.driver = adapter.driver;
  info.library = adapter.library;
  info.software = adapter.software;
  for (std::string_view tier : gpu::tier_names(adapter.tiers)) info.tiers.emplace_back(tier);
  const gpu::Census census = opened.device->census();
  info.gpu_bytes = census.buffer_bytes;
  info.kernels = census.kernels;
  info.row_shapes = opened.target->shapes_tried();
  info.row_shapes_different = opened.target->shapes_different();
  return info;
}

}  // namespace tandem::engine
