// What an export reads, a Hugging Face folder or a GGUF file, in the same terms.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "exporter/checkpoint.h"
#include "exporter/metadata.h"

namespace tandem::exporter {

struct Source {
  Texts texts;
  std::string config_name, tokenizer_name, generation_name;  // of the texts' files, in messages
  std::vector<artifact::BoundFile> text_files;               // besides those of the weights
  std::unique_ptr<const Checkpoint> checkpoint;              // which bindings point to
};

// A folder with config.json, tokenizer.json, *.safetensors and, if they are there,
// chat_template.jinja and generation_config.json; or a file with all of it.
Result<Source> open_source(const std::filesystem::path& path);

// The same of a GGUF file (docs/gguf.md).
Result<Source> open_gguf_source(const std::filesystem::path& path);

}  // namespace tandem::exporter
