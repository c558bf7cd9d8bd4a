#include "exporter/export.h"

#include <algorithm>
#include <memory>

#include "base/error.h"
#include "exporter/metadata.h"
#include "exporter/source.h"
#include "exporter/source_hashes.h"
#include "exporter/weights.h"
#include "spec/pair.h"
#include "text/generation_config.h"

namespace tandem::exporter {
namespace {

using artifact::BoundFile;
using artifact::Manifest;

// All files that the artifact is made from, by name.
Result<std::vector<BoundFile>> sources_of(const Source& source, SourceHashes& hashes) {
  std::vector<BoundFile> sources = source.text_files;
  TRY_ASSIGN(const std::vector<Digest> digests, hashes.get());
  const Checkpoint& checkpoint = *source.checkpoint;
  for (size_t i = 0; i < digests.size(); ++i) {
    sources.push_back({checkpoint.file_names()[i], checkpoint.files()[i].size(), digests[i]});
  }
  std::sort(sources.begin(), sources.end(),
            [](const auto& a, const auto& b) { return a.file < b.file; });
  return sources;
}

// A checkpoint and what its tensors are to the artifact.
struct Target {
  Source source;
  spec::Config config;
  std::vector<std::string> ignored_settings;
  Binding binding;
};

struct Assistant {
  Source source;
  spec::AssistantConfig config;
  Binding binding;
};

Result<Target> open_target(const std::filesystem::path& path) {
  Target target;
  TRY_ASSIGN(target.source, open_source(path));
  const Source& source = target.source;
  TRY_ASSIGN(target.config, spec::read_config(source.texts.config, source.config_name));
  if (source.texts.generation_config) {
    TRY_ASSIGN(text::GenerationConfig generation,
               text::read_generation_config(*source.texts.generation_config, source.generation_name,
                                            target.config.vocabulary));
    target.ignored_settings = std::move(generation.ignored);
  }
  TRY_ASSIGN(target.binding, bind(*source.checkpoint, target.config));
  return target;
}

// An assistant that fits the target, whose tokenizer's source has the sha256 `tokenizer`.
Result<Assistant> open_assistant(const std::filesystem::path& path, const spec::Config& target,
                                 const Digest& tokenizer) {
  Assistant assistant;
  TRY_ASSIGN(assistant.source, open_source(path));
  const Source& source = assistant.source;
  TRY_ASSIGN(assistant.config,
             spec::read_assistant_config(source.texts.config, source.config_name));
  TRY(spec::check_pair(target, assistant.config, source.config_name));
  const Digest found = sha256(source.texts.tokenizer);
  if (found != tokenizer) {
    return fail(ErrorCode::bad_value,
                "{}: the assistant does not fit the target: expected the sha256 {} of the target's "
                "tokenizer, found {}",
                source.tokenizer_name, tokenizer.hex(), found.hex());
  }
  TRY_ASSIGN(assistant.binding, bind(*source.checkpoint, assistant.config));
  return assistant;
}

// What a receipt says of a target or an assistant. `published` is what the user says.
template <class Part>
Result<artifact::Origin> origin(std::string_view role, const Part& part, SourceHashes& hashes,
                                const std::optional<artifact::Published>& published,
                                std::span<const artifact::Pins> pins) {
  artifact::Origin origin;
  origin.exporter = exporter_name;
  origin.config = sha256(spec::canonical_config(part.config));
  TRY_ASSIGN(origin.sources, sources_of(part.source, hashes));
  origin.ignored = part.binding.ignored;
  origin.published = published;
  const artifact::Pin* pin = artifact::matching_pin(role, origin, pins);
  if (pin != nullptr) origin.published = pin->published;
  return origin;
}

Result<void> check_bounds(const ExportOptions& options, const spec::Config& config) {
  if (options.input_bound == 0)
    return fail(ErrorCode::invalid_argument, "input bound: expected at least 1, found 0");
  if (options.context_bound &&
      (*options.context_bound == 0 || *options.context_bound > config.max_positions)) {
    return fail(ErrorCode::invalid_argument,
                "context bound: expected 1 to {} (max_position_embeddings), found {}",
                config.max_positions, *options.context_bound);
  }
  return {};
}

// What is read is left as it is: refuses an output inside it.
Result<void> check_outside(const std::filesystem::path& out, const std::filesystem::path& input) {
  std::error_code error;
  const auto folder = std::filesystem::weakly_canonical(input, error);
  const auto place = std::filesystem::weakly_canonical(std::filesystem::absolute(out), error);
  if (error ||
      std::mismatch(folder.begin(), folder.end(), place.begin(), place.end()).first != folder.end())
    return {};
  return fail(ErrorCode::invalid_argument,
              "{}: expected an output outside {}, which is read; choose another place",
              out.string(), input.string());
}

// Publishes what the manifest, the receipt's origins and the report's tensors begin.
Result<ExportReport> finish(Publication& publication, const Manifest& manifest, const Files& files,
                            artifact::Receipt receipt, std::span<const artifact::Pins> pins,
                            const PublishOptions& options, ExportReport report) {
  // What cannot be loaded is not published.
  TRY(make_load_plan(manifest, manifest.mtp ? artifact::View::mtp : artifact::View::plain));
  TRY_ASSIGN(receipt, publish(publication, manifest, files, std::move(receipt), options));
  report.digest = sha256(manifest_text(manifest));
  report.recipe = manifest.recipe;
  report.provenance = artifact::provenance(receipt, pins);
  for (const artifact::ReceiptShard& shard : receipt.shards) report.bytes += shard.bytes;
  for (const auto& part : {receipt.target, receipt.assistant}) {
    if (!part) continue;
    report.ignored.insert(report.ignored.end(), part->ignored.begin(), part->ignored.end());
  }
  return report;
}

}  // namespace

Result<ExportReport> export_checkpoint(const std::filesystem::path& path,
                                       const std::filesystem::path& out,
                                       const ExportOptions& options,
                                       const artifact::Progress& progress) {
  TRY(check_outside(out, path));
  if (options.assistant) TRY(check_outside(out, *options.assistant));
  TRY_ASSIGN(const std::vector<artifact::Pins> pins, artifact::known_pins(options.sources));
  TRY_ASSIGN(const Target target, open_target(path));
  const Texts& texts = target.source.texts;
  TRY(check_bounds(options, target.config));
  std::vector<BoundTensor> tensors = target.binding.tensors;
  std::optional<Assistant> assistant;
  if (options.assistant) {
    TRY_ASSIGN(assistant,
               open_assistant(*options.assistant, target.config, sha256(texts.tokenizer)));
    const std::vector<BoundTensor>& own = assistant->binding.tensors;
    tensors.insert(tensors.end(), own.begin(), own.end());
  }
  const WeightOptions& weights = options.weights;
  TRY(check_options(weights.recipe, tensors));
  TRY_ASSIGN(const std::string tokenizer, compile_tokenizer(texts, target.config));
  TRY_ASSIGN(Publication publication, Publication::begin(out, options.observer));

  Manifest manifest = begin_manifest(target.config, texts, tokenizer);
  manifest.input_bound = options.input_bound;
  if (options.context_bound) manifest.context_bound = *options.context_bound;
  if (assistant) manifest.mtp = artifact::Mtp{assistant->config, {}, {}};
  SourceHashes hashes(target.source.checkpoint->files(), weights);
  std::optional<SourceHashes> assistant_hashes;
  if (assistant) assistant_hashes.emplace(assistant->source.checkpoint->files(), weights);
  ExportReport report;
  report.ignored_settings = target.ignored_settings;
  TRY_ASSIGN(report.tensors, write_weights(tensors, weights, publication, manifest, progress));
  artifact::Receipt receipt;
  TRY_ASSIGN(receipt.target,
             origin(artifact::target_role, target, hashes, options.published, pins));
  manifest.origin = origin_digest(*receipt.target);
  if (assistant) {
    TRY_ASSIGN(receipt.assistant, origin(artifact::assistant_role, *assistant, *assistant_hashes,
                                         options.assistant_published, pins));
    manifest.mtp->origin = origin_digest(*receipt.assistant);
  }
  return finish(publication, manifest, artifact_files(texts, tokenizer), std::move(receipt), pins,
                {weights.threads, weights.cancel, {}}, std::move(report));
}

Result<ExportReport> export_assistant(const std::filesystem::path& path,
                                      const std::filesystem::path& onto,
                                      const std::filesystem::path& out,
                                      const ExportOptions& options,
                                      const artifact::Progress& progress) {
  TRY(check_outside(out, path));
  TRY(check_outside(out, onto));
  TRY_ASSIGN(const std::vector<artifact::Pins> pins, artifact::known_pins(options.sources));
  TRY_ASSIGN(const artifact::Artifact plain, artifact::Artifact::open(onto));
  if (plain.manifest().mtp) {
    return fail(ErrorCode::bad_value,
                "{}: expected an artifact without an assistant, found one with the view mtp; "
                "export the target alone to attach another",
                onto.string());
  }
  TRY_ASSIGN(const Assistant assistant,
             open_assistant(path, plain.config(), plain.manifest().tokenizer_source));
  const WeightOptions& weights = options.weights;
  TRY(check_options(weights.recipe, assistant.binding.tensors));
  TRY_ASSIGN(Publication publication, Publication::begin(out, options.observer));

  Manifest manifest = plain.manifest();
  manifest.attached_to = plain.digest();
  manifest.mtp = artifact::Mtp{assistant.config, {}, {}};
  SourceHashes hashes(assistant.source.checkpoint->files(), weights);
  ExportReport report;
  TRY_ASSIGN(report.tensors,
             write_weights(assistant.binding.tensors, weights, publication, manifest, progress));
  artifact::Receipt receipt;
  TRY_ASSIGN(receipt.assistant, origin(artifact::assistant_role, assistant, hashes,
                                       options.assistant_published, pins));
  manifest.mtp->origin = origin_digest(*receipt.assistant);
  return finish(publication, manifest, {}, std::move(receipt), pins,
                {weights.threads, weights.cancel, onto}, std::move(report));
}

}  // namespace tandem::exporter
