// The model of an artifact on a device that is open: what it is opened with, and what it says of
// itself.
#include "base/error.h"
#include "engine/open_model.h"

namespace tandem::engine {

model::TensorTypes tensor_types(const artifact::Manifest& manifest) {
  model::TensorTypes types;
  for (const artifact::TensorEntry& tensor : manifest.tensors) types[tensor.name] = tensor.type;
  return types;
}

Result<gpu::Tiers> disabled_tiers(const EngineOptions& options) {
  gpu::Tiers tiers;
  for (const std::string& tier : options.disabled_tiers) {
    if (tier == "subgroups") {
      tiers.subgroups = true;
    } else if (tier == "dp4a") {
      tiers.dp4a = true;
    } else if (tier == "f16") {
      tiers.f16 = true;
    } else {
      return fail(ErrorCode::invalid_argument, "tier {}: expected subgroups, dp4a or f16", tier);
    }
  }
  return tiers;
}

Result<model::Capacity> capacity(const artifact::Manifest& manifest, const EngineOptions& options) {
  model::Capacity capacity{
      .context = options.context.value_or(manifest.context_bound),
      .input_bound = options.input_bound.value_or(manifest.input_bound),
      .kv = options.kv == KvPrecision::f16 ? ops::KvType::f16 : ops::KvType::f32,
      .activations =
          options.activations == Activations::int8 ? ops::Activations::int8 : ops::Activations::f32,
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

// Whether int8 activations change anything: products of the per-layer inputs never read them.
bool has_int8_products(const artifact::Manifest& manifest) {
  const auto& tensors = manifest.tensors;
  return std::any_of(tensors.begin(), tensors.end(), [](const artifact::TensorEntry& tensor) {
    return ops::takes_int8(tensor.type) && tensor.name.find("per_layer") == std::string::npos;
  });
}

const spec::AssistantConfig* assistant(const artifact::Manifest& manifest) {
  return manifest.mtp ? &manifest.mtp->config : nullptr;
}

Result<OpenedModel> open_target(const artifact::Artifact& artifact, const EngineOptions& options,
                                std::unique_ptr<gpu::Device> device,
                                const Instruments& instruments) {
  TRY_ASSIGN(model::Capacity bounds, capacity(artifact.manifest(), options));
  bounds.scripted = instruments.scripted && bounds.drafts > 0;
  OpenedModel opened;
  opened.device = std::move(device);
  const gpu::Passes asked =
      options.pass_per_dispatch ? gpu::Passes::one_per_dispatch : gpu::Passes::one_per_submission;
  TRY_ASSIGN(
      std::unique_ptr<model::Target> target,
      model::Target::open(*opened.device, artifact.config(), tensor_types(artifact.manifest()),
                          {.capacity = bounds,
                           .assistant = assistant(artifact.manifest())
                                            ? std::optional(artifact.manifest().mtp->config)
                                            : std::nullopt,
                           .passes = instruments.timed ? gpu::Passes::timed : asked}));
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

EngineInfo describe(const artifact::Artifact& artifact, const OpenedModel& opened) {
  EngineInfo info;
  info.artifact = artifact.digest().hex();
  info.vocabulary = artifact.config().vocabulary;
  const model::Capacity& capacity = opened.model->capacity();
  info.context = capacity.context;
  info.input_bound = capacity.input_bound;
  info.drafts = capacity.drafts;
  info.kv = capacity.kv == ops::KvType::f16 ? KvPrecision::f16 : KvPrecision::f32;
  if (capacity.activations == ops::Activations::int8 && has_int8_products(artifact.manifest())) {
    info.activations = Activations::int8;
  }
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
  info.session_bytes = opened.target->plan().sequence_bytes();
  info.kernels = census.kernels;
  info.row_shapes = opened.target->shapes_tried();
  info.tuned_shapes = opened.target->shapes_tuned();
  info.row_shapes_different = opened.target->shapes_different();
  return info;
}

}  // namespace tandem::engine
