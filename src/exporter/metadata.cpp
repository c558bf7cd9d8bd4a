#include "exporter/metadata.h"

#include <algorithm>

#include "artifact/verify.h"
#include "base/error.h"
#include "base/files.h"
#include "text/pieces.h"
#include "text/tokenizer.h"

namespace tandem::exporter {
namespace {

using artifact::BoundFile;
using artifact::Manifest;

Result<void> write_file(Publication& publication, std::string_view name, std::string_view bytes) {
  TRY_ASSIGN(OutputFile file, publication.create(name));
  TRY(file.write(bytes));
  return file.close();
}

// Every byte of the staged folder, against its own hashes and what was meant to be written.
Result<void> check_staged(const std::filesystem::path& folder, std::string_view manifest,
                          std::string_view receipt, const PublishOptions& options) {
  const bool attached = !options.onto.empty();
  TRY_ASSIGN(const artifact::Verification staged,
             artifact::verify(attached ? options.onto : folder, {},
                              attached ? folder : std::filesystem::path(), options.threads,
                              options.cancel));
  TRY_ASSIGN(const std::string read_back,
             read_file(folder / artifact::receipt_file, receipt.size(), Links::refuse));
  if (staged.artifact.digest() == sha256(manifest) && read_back == receipt) return {};
  return fail(ErrorCode::hash_mismatch,
              "{}: {} and {} do not read back as they were written; check the disk, then export "
              "again",
              folder.string(), artifact::manifest_file, artifact::receipt_file);
}

}  // namespace

const std::string_view exporter_name = "tandem " TANDEM_VERSION;

BoundFile bound(std::string_view name, std::string_view bytes) {
  return {std::string(name), bytes.size(), sha256(bytes)};
}

Result<std::string> compile_tokenizer(const Texts& texts, const spec::Config& config) {
  TRY_ASSIGN(const std::vector<std::byte> table,
             texts.tokenizer_form == TokenizerForm::json
                 ? text::compile_tokenizer(texts.tokenizer, tokenizer_file)
                 : text::with_source(texts.tokenizer, sha256(texts.tokenizer)));
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
  manifest.tokenizer = bound(artifact::tokenizer_table_file, tokenizer_table);
  manifest.tokenizer_source = sha256(texts.tokenizer);
  if (texts.chat_template) manifest.chat_template = bound(template_file, *texts.chat_template);
  if (texts.generation_config)
    manifest.generation_config = bound(generation_file, *texts.generation_config);
  manifest.context_bound = std::min(artifact::default_context_bound, config.max_positions);
  return manifest;
}

Files artifact_files(const Texts& texts, std::string_view tokenizer_table) {
  Files files;
  files.emplace(artifact::tokenizer_table_file, tokenizer_table);
  if (texts.chat_template) files.emplace(template_file, *texts.chat_template);
  if (texts.generation_config) files.emplace(generation_file, *texts.generation_config);
  return files;
}

Result<artifact::Receipt> publish(Publication& publication, const Manifest& manifest,
                                  const Files& files, artifact::Receipt receipt,
                                  const PublishOptions& options) {
  receipt.recipe = manifest.recipe;
  receipt.files = bound_files(manifest);
  receipt.shards = bound_shards(manifest);
  for (const auto& [name, bytes] : files) TRY(write_file(publication, name, bytes));
  const std::string manifest_bytes = manifest_text(manifest);
  const std::string receipt_bytes = receipt_text(receipt);
  TRY(write_file(publication, artifact::manifest_file, manifest_bytes));
  TRY(write_file(publication, artifact::receipt_file, receipt_bytes));
  const auto check = [&](const std::filesystem::path& folder) -> Result<void> {
    TRY(check_staged(folder, manifest_bytes, receipt_bytes, options));
    return check_cancel(options.cancel);
  };
  TRY(publication.commit(check));
  return receipt;
}

}  // namespace tandem::exporter
