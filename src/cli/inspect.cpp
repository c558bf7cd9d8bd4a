// tandem inspect: what an artifact is, what it would need on a device, and what each method would
// run there.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>

#include "artifact/artifact.h"
#include "base/error.h"
#include "cli/command.h"
#include "cli/engine_flags.h"
#include "cli/limits_file.h"
#include "cli/output.h"
#include "cli/provenance.h"
#include "cli/tuning_table.h"
#include "engine/open_model.h"
#include "engine/tuning.h"
#include "model/target.h"
#include "model/target_sequence.h"

namespace tandem::cli {
namespace {

struct Flags {
  EngineFlags engine;
  bool json = false;
  bool tensors = false;
  bool plan = false;
  bool routes = false;
  bool census = false;
  std::optional<std::string> limits;
};

void print_layers(const spec::Config& config) {
  fmt::print("layers        {} ({} with their own KV)\n", config.layers.size(),
             config.owning_layers());
  for (const spec::LayerKind kind : {spec::LayerKind::sliding, spec::LayerKind::full}) {
    std::vector<size_t> indices;
    for (size_t i = 0; i < config.layers.size(); ++i) {
      if (config.layers[i].kind == kind) indices.push_back(i);
    }
    if (indices.empty()) continue;
    const spec::Layer& layer = config.layers[indices.front()];
    fmt::print("  {:<18} {}, head_dim {}, {}, {} of {} at theta {}{}\n", spec::name(kind),
               counted(indices.size(), "layer"), layer.head_dim, counted(layer.kv_heads, "KV head"),
               layer.rope.rotated_pairs, counted(layer.head_dim / 2, "pair"), layer.rope.theta,
               kind == spec::LayerKind::sliding ? fmt::format(", window {}", config.window) : "");
  }
}

uint64_t weight_count(const artifact::Manifest& manifest, bool of_assistant) {
  uint64_t weights = 0;
  for (const artifact::TensorEntry& tensor : manifest.tensors) {
    if (tensor.type == spec::WeightType::u32) continue;
    if (spec::is_assistants(tensor.name) == of_assistant)
      weights += uint64_t{tensor.rows} * tensor.columns;
  }
  return weights;
}

void print_assistant(const artifact::Manifest& manifest) {
  const spec::AssistantConfig& config = manifest.mtp->config;
  fmt::print("assistant     {}, {}, hidden {}, {}, window {}\n",
             counted(weight_count(manifest, true), "parameter"),
             counted(config.text.layers.size(), "layer"), config.text.hidden,
             counted(config.text.heads, "query head"), config.text.window);
  for (const spec::LayerKind kind : {spec::LayerKind::sliding, spec::LayerKind::full}) {
    const auto& layers = config.text.layers;
    if (std::none_of(layers.begin(), layers.end(), [&](const auto& l) { return l.kind == kind; }))
      continue;
    fmt::print("  {:<18} reads the KV of layer {}\n", spec::name(kind),
               manifest.config.donor(kind).value());
  }
  if (const std::optional<spec::OrderedHead>& head = config.ordered) {
    fmt::print("  head               the top {} of {} of {}\n", head->top_k,
               counted(head->centroids, "centroid"),
               counted(config.text.vocabulary / head->centroids, "token"));
  }
}

struct Count {
  uint64_t tensors = 0;
  uint64_t values = 0;
};

std::map<std::string_view, Count> count_by_type(const artifact::Manifest& manifest) {
  std::map<std::string_view, Count> types;
  for (const artifact::TensorEntry& tensor : manifest.tensors) {
    Count& count = types[spec::name(tensor.type)];
    ++count.tensors;
    count.values += uint64_t{tensor.rows} * tensor.columns;
  }
  return types;
}

// What a part was made from: "tandem 0.1.0 from 5 files, 30.8 MB; google/gemma at 0123; 2 tensors
// left out".
void print_origin(std::string_view part, const std::optional<artifact::Origin>& origin) {
  if (!origin) return;
  uint64_t bytes = 0;
  for (const artifact::BoundFile& source : origin->sources) bytes += source.bytes;
  fmt::print("  {:<11} {} from ", part, printable(origin->exporter));
  if (origin->synthetic_seed) {
    fmt::print("the seed {}", *origin->synthetic_seed);
  } else {
    fmt::print("{}, {}", counted(origin->sources.size(), "file"), megabytes(bytes));
  }
  if (origin->published) {
    fmt::print("; {} at {}", printable(origin->published->repository),
               printable(origin->published->revision));
  }
  if (!origin->ignored.empty())
    fmt::print("; {} left out", counted(origin->ignored.size(), "tensor"));
  fmt::print("\n");
}

void print_identity(const engine::OpenedArtifact& source) {
  const artifact::Artifact& artifact = source.artifact;
  const artifact::Receipt& receipt = artifact.receipt();
  fmt::print("artifact      {}\n", artifact.digest().hex());
  if (const auto& plain = artifact.manifest().attached_to)
    fmt::print("  attached to {}\n", plain->hex());
  fmt::print("{}sources\n", describe(source.provenance));
  print_origin("target", receipt.target);
  print_origin("assistant", receipt.assistant);
}

void print_storage(const artifact::Manifest& manifest) {
  const artifact::Recipe& recipe = manifest.recipe;
  fmt::print("recipe        matrices {}, tables {}, vectors {}; {} of another type\n",
             spec::name(recipe.matrix), spec::name(recipe.table), spec::name(recipe.vector),
             counted(recipe.overrides.size(), "tensor"));
  for (const auto& [type, count] : count_by_type(manifest))
    fmt::print("  {:<11} {}, {}\n", type, counted(count.tensors, "tensor"),
               counted(count.values, "value"));
  fmt::print("shards\n");
  for (const std::string_view role : {artifact::target_role, artifact::assistant_role}) {
    uint64_t shards = 0, pieces = 0, bytes = 0;
    for (const artifact::Shard& shard : manifest.shards) {
      if (shard.role != role) continue;
      ++shards;
      pieces += shard.pieces.size();
      bytes += shard.bytes;
    }
    if (shards > 0)
      fmt::print("  {:<11} {}, {} in {}\n", role, shards, megabytes(bytes),
                 counted(pieces, "piece"));
  }
  fmt::print("files\n");
  for (const auto& file :
       {std::optional(manifest.tokenizer), manifest.chat_template, manifest.generation_config}) {
    if (file) fmt::print("  {} ({})\n", printable(file->file), counted(file->bytes, "byte"));
  }
}

void print_model(const artifact::Manifest& manifest) {
  const spec::Config& config = manifest.config;
  fmt::print("family        {}\n", config.family == spec::Family::gemma3 ? "Gemma 3" : "Gemma 4");
  fmt::print("views         plain{}\n", manifest.mtp ? ", mtp" : "");
  fmt::print("parameters    {}\n", weight_count(manifest, false));
  fmt::print("vocabulary    {}, hidden {}, {}, per-layer inputs of {}\n", config.vocabulary,
             config.hidden, counted(config.heads, "query head"), config.per_layer_input);
  print_layers(config);
  fmt::print("positions     {}; context bound {}, input bound {}\n", config.max_positions,
             manifest.context_bound, manifest.input_bound);
  if (manifest.mtp) print_assistant(manifest);
}

// For programs: all of the manifest, and what is to be said beside it.
Json summary(const engine::OpenedArtifact& source) {
  const artifact::Artifact& artifact = source.artifact;
  const artifact::Manifest& manifest = artifact.manifest();
  const artifact::Receipt& receipt = artifact.receipt();
  Json types = Json::object();
  for (const auto& [type, count] : count_by_type(manifest))
    types[type] = {{"tensors", count.tensors}, {"values", count.values}};
  return {
      {"artifact", artifact.digest().hex()},
      {"provenance", to_json(source.provenance)},
      {"target", artifact::to_json(receipt.target)},
      {"assistant", artifact::to_json(receipt.assistant)},
      {"parameters",
       {{"target", weight_count(manifest, false)}, {"assistant", weight_count(manifest, true)}}},
      {"types", types},
      {"manifest", Json::parse(manifest_text(manifest), nullptr, false)}};
}

void print_tensors(const artifact::Manifest& manifest) {
  fmt::print("\n");
  for (const artifact::TensorEntry& tensor : manifest.tensors) {
    fmt::print("{:<34} {:<5} [{}, {}]\n", tensor.name, spec::name(tensor.type), tensor.rows,
               tensor.columns);
  }
}

void print_plan(const model::Plan& plan) {
  fmt::print("\nplan: context {}, input bound {}, KV {}, activations {}\n", plan.capacity.context,
             plan.capacity.input_bound, plan.capacity.kv == ops::KvType::f16 ? "f16" : "f32",
             plan.capacity.activations == ops::Activations::int8 ? "int8" : "f32");
  fmt::print("  weights   {:>10} in {}\n", megabytes(plan.weight_bytes()),
             counted(plan.weights.size(), "buffer"));
  fmt::print("  scratch   {:>10} in {}, shared by all sessions\n", megabytes(plan.scratch_bytes()),
             counted(plan.scratch.size(), "buffer"));
  fmt::print("  a session {:>10} in {}\n", megabytes(plan.sequence_bytes()),
             counted(plan.sequence.size(), "buffer"));
  const model::PlannedBuffer* largest = &plan.weights.front();
  for (const auto* buffers : {&plan.weights, &plan.scratch, &plan.sequence}) {
    for (const model::PlannedBuffer& buffer : *buffers) {
      if (buffer.bytes > largest->bytes) largest = &buffer;
    }
  }
  fmt::print("  largest buffer and binding: {}, {}\n", largest->name,
             counted(largest->bytes, "byte"));
}

void print_methods(const model::TargetSequence& sequence, const Flags& flags) {
  for (std::string_view method : {"prefill", "decode", "score", "k2_round", "sampled k2_round"}) {
    const std::vector<const gpu::CommandList*> lists = sequence.method(method);
    if (lists.empty()) continue;  // there is no assistant
    std::map<std::string_view, uint32_t> kernels;
    uint64_t dispatches = 0, read = 0, written = 0;
    for (const gpu::CommandList* list : lists) {
      for (const gpu::DispatchInfo& dispatch : list->dispatches()) {
        ++kernels[dispatch.kernel];
        ++dispatches;
        read += dispatch.bytes_read;
        written += dispatch.bytes_written;
      }
    }
    fmt::print("\n{}: {} dispatches of {}", method, dispatches, counted(kernels.size(), "kernel"));
    if (flags.census)
      fmt::print("; {} bound for reading, {} for writing", megabytes(read), megabytes(written));
    fmt::print("\n");
    if (!flags.routes) continue;
    for (const auto& [kernel, count] : kernels) fmt::print("  {:>4} x {}\n", count, kernel);
  }
}

Result<void> run(const Flags& flags) {
  std::optional<gpu::Limits> limits;  // read before anything is printed
  if (flags.limits) {
    TRY_ASSIGN(limits, read_limits(*flags.limits));
  }
  TRY_ASSIGN(const engine::OpenedArtifact source,
             engine::open_artifact(flags.engine.artifact, flags.engine.options()));
  const artifact::Artifact& artifact = source.artifact;
  if (flags.json) {
    fmt::print("{}\n", summary(source).dump(2, ' ', true, Json::error_handler_t::replace));
    return {};
  }
  print_identity(source);
  print_model(artifact.manifest());
  print_storage(artifact.manifest());
  if (flags.tensors) print_tensors(artifact.manifest());
  if (!flags.plan && !flags.routes && !flags.census) return {};
  const EngineOptions options = flags.engine.options();
  if (options.place == Place::cpu) {
    return fail(ErrorCode::invalid_argument,
                "--device cpu: --plan, --routes and --census are about a GPU; leave it out");
  }
  if (limits) {
    TRY_ASSIGN(const model::Plan plan, engine::plan_model(artifact, options, *limits));
    print_plan(plan);
    return {};
  }
  TRY_ASSIGN(engine::OpenedModel opened, engine::open_model(artifact, options));
  fmt::print("\nadapter       {} ({})\n", printable(opened.device->info().name),
             fmt::join(gpu::tier_names(opened.device->info().tiers), ", "));
  if (flags.plan) print_plan(opened.target->plan());
  if (!flags.routes && !flags.census) return {};
  const ops::TunedProducts tuned = engine::take_tuning(opened, options);
  TRY_ASSIGN(const auto sequence, model::TargetSequence::make(*opened.target));
  print_methods(*sequence, flags);
  if (flags.routes) print_tuning(opened, tuned);
  return {};
}

}  // namespace

Command inspect(CLI::App& parent) {
  const auto flags = std::make_shared<Flags>();
  CLI::App* app =
      parent.add_subcommand("inspect", "Show an artifact, its plan, and what its methods run");
  flags->engine.add(*app);
  CLI::Option* tensors =
      app->add_flag("--tensors", flags->tensors, "Name, type and shape of every tensor");
  CLI::Option* plan = app->add_flag("--plan", flags->plan,
                                    "GPU memory: weights, scratch, a session, the largest binding");
  CLI::Option* routes = app->add_flag("--routes", flags->routes,
                                      "The kernels that each method runs, with their shapes");
  CLI::Option* census =
      app->add_flag("--census", flags->census, "Dispatches and bytes of each method");
  app->add_flag("--json", flags->json, "Print JSON: what is shown without options, and more")
      ->excludes(tensors)
      ->excludes(plan)
      ->excludes(routes)
      ->excludes(census);
  app->add_option("--limits", flags->limits,
                  "Plan for the limits in this JSON file, which `tandem devices --limits` prints, "
                  "instead of a device's")
      ->needs(plan)
      ->excludes(routes)
      ->excludes(census);
  app->footer(
      "--plan, --routes and --census open the device and allocate the plan, but with --limits; no "
      "weights are read.");
  return {app, [flags] { return run(*flags); }};
}

}  // namespace tandem::cli
