#include "exporter/export.h"

#include <algorithm>
#include <memory>

#include "base/error.h"
#include "exporter/metadata.h"
#include "exporter/source_hashes.h"
#include "exporter/weights.h"
#include "spec/pair.h"
#include "text/generation_config.h"

namespace tandem::exporter {
namespace {

using artifact::BoundFile;
using artifact::Manifest;

constexpr uint64_t max_text_bytes = 256 << 20;

Result<std::string> read_text(const std::filesystem::path& folder, std::string_view name) {
  return read_file(folder / name, max_text_bytes, Links::follow);
}

Result<std::optional<std::string>> read_optional(const std::filesystem::path& folder,
                                                 std::string_view name) {
  if (!is_there(folder / name)) return std::nullopt;
  TRY_ASSIGN(std::string text, read_text(folder, name));
  return text;
}

Result<Texts> read_texts(const std::filesystem::path& folder) {
  Texts texts;
  TRY_ASSIGN(texts.config, read_text(folder, config_file));
  TRY_ASSIGN(texts.tokenizer, read_text(folder, tokenizer_file));
  TRY_ASSIGN(texts.chat_template, read_optional(folder, template_file));
  TRY_ASSIGN(texts.generation_config, read_optional(folder, generation_file));
  return texts;
}

// All files that the artifact is made from, by name.
Result<std::vector<BoundFile>> sources_of(const std::filesystem::path& folder,
                                          const Checkpoint& checkpoint, const Texts& texts,
                                          SourceHashes& hashes) {
  std::vector<BoundFile> sources = {bound(config_file, texts.config),
                                    bound(tokenizer_file, texts.tokenizer)};
  if (texts.chat_template) sources.push_back(bound(template_file, *texts.chat_template));
  if (texts.generation_config) sources.push_back(bound(generation_file, *texts.generation_config));
  if (checkpoint.has_index()) {
    TRY_ASSIGN(const std::string index, read_text(folder, index_file));
    sources.push_back(bound(index_file, index));
  }
  TRY_ASSIGN(const std::vector<Digest> digests, hashes.get());
  for (size_t i = 0; i < digests.size(); ++i) {
    sources.push_back({checkpoint.file_names()[i], checkpoint.files()[i].size(), digests[i]});
  }
  std::sort(sources.begin(), sources.end(),
            [](const auto& a, const auto& b) { return a.file < b.file; });
  return sources;
}

// An assistant that fits the target.
struct Assistant {
  Texts texts;
  spec::AssistantConfig config;
  std::unique_ptr<const Checkpoint> checkpoint;  // which the binding points to
  Binding binding;
};

Result<Assistant> open_assistant(const std::filesystem::path& folder, const Texts& target_texts,
                                 const spec::Config& target) {
  Assistant assistant;
  TRY_ASSIGN(assistant.texts, read_texts(folder));
  TRY_ASSIGN(assistant.config,
             spec::read_assistant_config(assistant.texts.config, (folder / config_file).string()));
  TRY(spec::check_pair(target, assistant.config, (folder / config_file).string()));
  const Digest expected = sha256(target_texts.tokenizer), found = sha256(assistant.texts.tokenizer);
  if (found != expected) {
    return fail(ErrorCode::bad_value,
                "{}: the assistant does not fit the target: expected the sha256 {} of the target's "
                "tokenizer, found {}",
                (folder / tokenizer_file).string(), expected.hex(), found.hex());
  }
  TRY_ASSIGN(Checkpoint checkpoint, Checkpoint::open(folder));
  assistant.checkpoint = std::make_unique<const Checkpoint>(std::move(checkpoint));
  TRY_ASSIGN(assistant.binding, bind(*assistant.checkpoint, assistant.config));
  return assistant;
}

Result<artifact::ReceiptAssistant> assistant_receipt(const std::filesystem::path& folder,
                                                     const Assistant& assistant,
                                                     SourceHashes& hashes) {
  artifact::ReceiptAssistant receipt;
  receipt.config = sha256(spec::canonical_config(assistant.config));
  TRY_ASSIGN(receipt.sources, sources_of(folder, *assistant.checkpoint, assistant.texts, hashes));
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

Result<ExportReport> export_checkpoint(const std::filesystem::path& folder,
                                       const std::filesystem::path& out,
                                       const ExportOptions& options,
                                       const artifact::Progress& progress) {
  TRY_ASSIGN(const Texts texts, read_texts(folder));
  TRY_ASSIGN(const spec::Config config,
             spec::read_config(texts.config, (folder / config_file).string()));
  if (texts.generation_config) {
    TRY(text::read_generation_config(*texts.generation_config, (folder / generation_file).string(),
                                     config.vocabulary));
  }
  TRY(check_bounds(options, config));
  TRY_ASSIGN(const Checkpoint checkpoint, Checkpoint::open(folder));
  TRY_ASSIGN(const Binding binding, bind(checkpoint, config));
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
  SourceHashes hashes(checkpoint.files(), options.weights);
  std::optional<SourceHashes> assistant_hashes;
  if (assistant) assistant_hashes.emplace(assistant->checkpoint->files(), options.weights);
  TRY_ASSIGN(std::vector<TensorReport> reports,
             write_weights(tensors, options.weights, publication, manifest, progress));
  TRY_ASSIGN(receipt.sources, sources_of(folder, checkpoint, texts, hashes));
  if (assistant) {
    TRY_ASSIGN(receipt.assistant,
               assistant_receipt(*options.assistant, *assistant, *assistant_hashes));
  }
  TRY_ASSIGN(const artifact::LoadPlan plan,
             make_load_plan(manifest, assistant ? artifact::View::mtp : artifact::View::plain));
  TRY(publish(publication, manifest, texts, tokenizer, std::move(receipt),
              {options.weights.threads, options.weights.cancel}));
  return ExportReport{sha256(manifest_text(manifest)), plan.bytes, manifest.recipe,
                      std::move(reports), std::move(ignored)};
}

}  // namespace tandem::exporter
