#include "exporter/metadata.h"

#include <algorithm>

#include "base/error.h"
#include "text/tokenizer.h"

namespace tandem::exporter {
namespace {

using artifact::BoundFile;
using artifact::Manifest;

constexpr std::string_view tokenizer_table_file = "tokenizer.bin";

Result<void> write_file(Publication& publication, std::string_view name, std::string_view bytes) {
  TRY_ASSIGN(OutputFile file, publication.create(name));
  TRY(file.write(bytes));
  return file.close();
}

}  // namespace

BoundFile bound(std::string_view name, std::string_view bytes) {
  return {std::string(name), bytes.size(), sha256(bytes)};
}

Result<std::string> compile_tokenizer(const Texts& texts, const spec::Config& config) {
  TRY_ASSIGN(const std::vector<std::byte> table,
             text::compile_tokenizer(texts.tokenizer, tokenizer_file));
  TRY_ASSIGN(const text::Tokenizer tokenizer, text::Tokenizer::load(table));
  if (tokenizer.size() > config.vocabulary) {
    return fail(ErrorCode::malformed_checkpoint,
                "{}: {} tokens are more than the vocab_size {} of {}", tokenizer_file,
                tokenizer.size(), config.vocabulary, config_file);
  }
  if (tokenizer.bos() != config.bos) {
    return fail(ErrorCode::malformed_checkpoint,
                "{}: the BOS is token {}, but bos_token_id in {} is {}", tokenizer_file,
                tokenizer.bos(), config_file, config.bos);
  }
  return std::string(reinterpret_cast<const char*>(table.data()), table.size());
}

Manifest begin_manifest(const spec::Config& config, const Texts& texts,
                        std::string_view tokenizer_table) {
  Manifest manifest;
  manifest.config = config;
  manifest.tokenizer = bound(tokenizer_table_file, tokenizer_table);
  manifest.tokenizer_source = sha256(texts.tokenizer);
  if (texts.chat_template) manifest.chat_template = bound(template_file, *texts.chat_template);
  if (texts.generation_config)
    manifest.generation_config = bound(generation_file, *texts.generation_config);
  manifest.context_bound = std::min(artifact::default_context_bound, config.max_positions);
  return manifest;
}

Result<void> publish(Publication& publication, const Manifest& manifest, const Texts& texts,
                     std::string_view tokenizer_table, artifact::Receipt receipt) {
  receipt.exporter = "tandem " TANDEM_VERSION;
  receipt.config = sha256(spec::canonical_config(manifest.config));
  receipt.recipe = manifest.recipe;
  receipt.files = bound_files(manifest);
  receipt.shards = bound_shards(manifest);
  TRY(write_file(publication, tokenizer_table_file, tokenizer_table));
  if (texts.chat_template) TRY(write_file(publication, template_file, *texts.chat_template));
  if (texts.generation_config)
    TRY(write_file(publication, generation_file, *texts.generation_config));
  TRY(write_file(publication, artifact::manifest_file, manifest_text(manifest)));
  TRY(write_file(publication, artifact::receipt_file, receipt_text(receipt)));
  return publication.commit();
}

}  // namespace tandem::exporter
