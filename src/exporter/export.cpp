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

// An assistant that fits the target.
struct Assistant {
  Source source;
  spec::AssistantConfig config;
  Binding binding;
};

Result<Assistant> open_assistant(const std::filesystem::path& path, const Texts& target_texts,
                                 const spec::Config& target) {
  Assistant assistant;
  TRY_ASSIGN(assistant.source, open_source(path));
  const Source& source = assistant.source;
  TRY_ASSIGN(assistant.config,
             spec::read_assistant_config(source.texts.config, source.config_name));
  TRY(spec::check_pair(target, assistant.config, source.config_name));
  const Digest expected = sha256(target_texts.tokenizer), found = sha256(source.texts.tokenizer);
  if (found != expected) {
    return fail(ErrorCode::bad_value,
                "{}: the assistant does not fit the target: expected the sha256 {} of the target's "
                "tokenizer, found {}",
                source.tokenizer_name, expected.hex(), found.hex());
  }
  TRY_ASSIGN(assistant.binding, bind(*source.checkpoint, assistant.config));
  return assistant;
}

Result<artifact::ReceiptAssistant> assistant_receipt(const Assistant& assistant,
                                                     SourceHashes& hashes) {
  artifact::ReceiptAssistant receipt;
  receipt.config = sha256(spec::canonical_config(assistant.config));
  TRY_ASSIGN(receipt.sources, sources_of(assistant.source, hashes));
  receipt.ignored = assistant.binding.ignored;
  return receipt;
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

}  // namespace

Result<ExportReport> export_checkpoint(const std::filesystem::path& path,
                                       const std::filesystem::path& out,
                                       const ExportOptions& options,
                                       const artifact::Progress& progress) {
  TRY_ASSIGN(const Source source, open_source(path));
  const Texts& texts = source.texts;
  TRY_ASSIGN(const spec::Config config, spec::read_config(texts.config, source.config_name));
  if (texts.generation_config) {
    TRY(text::read_generation_config(*texts.generation_config, source.generation_name,
                                     config.vocabulary));
  }
  TRY(check_bounds(options, config));
  TRY_ASSIGN(const Binding binding, bind(*source.checkpoint, config));
  std::vector<BoundTensor> tensors = binding.tensors;
  std::vector<artifact::IgnoredTensor> ignored = binding.ignored;
  std::optional<Assistant> assistant;
  if (options.assistant) {
    TRY_ASSIGN(assistant, open_assistant(*options.assistant, texts, config));
    const Binding& own = assistant->binding;
    tensors.insert(tensors.end(), own.tensors.begin(), own.tensors.end());
    ignored.insert(ignored.end(), own.ignored.begin(), own.ignored.end());
  }
  TRY(check_options(options.weights.recipe, tensors));
  TRY_ASSIGN(const std::string tokenizer, compile_tokenizer(texts, config));
  TRY_ASSIGN(Publication publication, Publication::begin(out, options.observer));

  Manifest manifest = begin_manifest(config, texts, tokenizer);
  manifest.input_bound = options.input_bound;
  if (options.context_bound) manifest.context_bound = *options.context_bound;
  if (assistant) manifest.mtp = artifact::Mtp{assistant->config, std::nullopt};
  artifact::Receipt receipt;
  receipt.ignored = binding.ignored;
  SourceHashes hashes(source.checkpoint->files(), options.weights);
  std::optional<SourceHashes> assistant_hashes;
  if (assistant) assistant_hashes.emplace(assistant->source.checkpoint->files(), options.weights);
  TRY_ASSIGN(std::vector<TensorReport> reports,
             write_weights(tensors, options.weights, publication, manifest, progress));
  TRY_ASSIGN(receipt.sources, sources_of(source, hashes));
  if (assistant) {
    TRY_ASSIGN(receipt.assistant, assistant_receipt(*assistant, *assistant_hashes));
  }
  TRY_ASSIGN(const artifact::LoadPlan plan,
             make_load_plan(manifest, assistant ? artifact::View::mtp : artifact::View::plain));
  TRY(publish(publication, manifest, texts, tokenizer, std::move(receipt),
              {options.weights.threads, options.weights.cancel}));
  return ExportReport{sha256(manifest_text(manifest)), plan.bytes, manifest.recipe,
                      std::move(reports), std::move(ignored)};
}

}  // namespace tandem::exporter
