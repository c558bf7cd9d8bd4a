// What an artifact holds beside its shards: texts, tokenizer table, manifest and receipt.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "artifact/receipt.h"
#include "base/cancel.h"
#include "base/publication.h"

namespace tandem::exporter {

inline constexpr std::string_view config_file = "config.json";
inline constexpr std::string_view tokenizer_file = "tokenizer.json";
using artifact::generation_file;
using artifact::template_file;

enum class TokenizerForm {
  json,   // a tokenizer.json
  table,  // compiled already, from a GGUF file, without the digest of its source
};

// What a checkpoint holds besides weights, in the form of a Hugging Face folder's files.
struct Texts {
  std::string config;
  std::string tokenizer;
  std::optional<std::string> chat_template;
  std::optional<std::string> generation_config;
  TokenizerForm tokenizer_form = TokenizerForm::json;
};

artifact::BoundFile bound(std::string_view name, std::string_view bytes);

// The tokenizer's table, which must fit the model.
Result<std::string> compile_tokenizer(const Texts& texts, const spec::Config& config);

// All of the manifest that does not depend on weights and sources, with the default bounds.
artifact::Manifest begin_manifest(const spec::Config& config, const Texts& texts,
                                  std::string_view tokenizer_table);

// What the receipts of this exporter begin with.
extern const std::string_view exporter_name;

struct PublishOptions {
  unsigned threads = 0;                // 0: one for each core
  const CancelFlag* cancel = nullptr;  // none: nobody ends it
  std::filesystem::path onto;          // the plain artifact that an assistant is attached to
};

// The files of an artifact beside shards, manifest and receipt: name to content.
using Files = std::map<std::string, std::string, std::less<>>;
Files artifact_files(const Texts& texts, std::string_view tokenizer_table);

// Writes files and the finished manifest, completes the receipt, which has its origins, by all that
// follows from the manifest, and commits what reads back from the disk as the artifact of exactly
// these. The receipt, as it was written.
Result<artifact::Receipt> publish(Publication& publication, const artifact::Manifest& manifest,
                                  const Files& files, artifact::Receipt receipt,
                                  const PublishOptions& options);

}  // namespace tandem::exporter
