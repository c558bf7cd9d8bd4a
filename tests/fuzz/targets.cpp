#include "fuzz/targets.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <utility>

#include "artifact/manifest.h"
#include "artifact/pins.h"
#include "artifact/receipt.h"
#include "artifact/safetensors.h"
#include "exporter/bind.h"
#include "exporter/gguf.h"
#include "exporter/source.h"
#include "spec/config.h"
#include "text/generation_config.h"
#include "text/tokenizer.h"

namespace tandem::test {
namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

// A regular file that lies in memory, for readers of files.
class MemoryFile {
 public:
  explicit MemoryFile(std::string_view bytes) : descriptor_(memfd_create("input", MFD_CLOEXEC)) {
    require(descriptor_ >= 0);
    require(write(descriptor_, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
  }
  ~MemoryFile() { close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  int descriptor_;
};

// A config reads back from its canonical text.
template <typename Config>
Result<void> read_back(Result<Config> (*read)(std::string_view, std::string_view),
                       std::string_view input) {
  const Result<Config> config = read(input, "config.json");
  if (!config) return tl::unexpected(config.error());
  const Result<Config> again = read(spec::canonical_config(*config), "canonical");
  require(again && *again == *config);
  return {};
}

Result<void> read_config(std::string_view input) { return read_back(spec::read_config, input); }

Result<void> read_assistant_config(std::string_view input) {
  return read_back(spec::read_assistant_config, input);
}

// JSON has one byte form: only its own canonical text is accepted.
Result<void> read_manifest(std::string_view input) {
  const auto manifest = artifact::read_manifest(input);
  if (!manifest) return tl::unexpected(manifest.error());
  require(artifact::manifest_text(*manifest) == input);
  return {};
}

Result<void> read_receipt(std::string_view input) {
  const auto receipt = artifact::read_receipt(input);
  if (!receipt) return tl::unexpected(receipt.error());
  require(artifact::receipt_text(*receipt) == input);
  return {};
}

Result<void> read_safetensors(std::string_view input) {
  const MemoryFile memory(input);
  const auto file = File::open(memory.path(), Links::follow);
  require(file.has_value());
  const auto entries = artifact::read_safetensors_header(*file);
  if (!entries) return tl::unexpected(entries.error());
  uint64_t end = 0;
  for (const auto& entry : *entries) {
    require(entry.offset >= end && entry.bytes <= input.size() - entry.offset);
    end = entry.offset + entry.bytes;
  }
  return {};
}

Result<void> read_gguf(std::string_view input) {
  const auto gguf = exporter::read_gguf(std::as_bytes(std::span(input)), "model.gguf");
  if (!gguf) return tl::unexpected(gguf.error());
  uint64_t end = 0;
  for (const auto& tensor : gguf->tensors) {
    require(tensor.offset >= end && tensor.bytes <= input.size() - tensor.offset);
    end = tensor.offset + tensor.bytes;
  }
  return {};
}

// All that an export reads of a GGUF file before its weights: config, tokenizer, tensors by name.
Result<void> read_gguf_source(std::string_view input) {
  const MemoryFile memory(input);
  TRY_ASSIGN(const exporter::Source source, exporter::open_gguf_source(memory.path()));
  const exporter::Texts& texts = source.texts;
  if (const auto assistant = spec::read_assistant_config(texts.config, source.config_name)) {
    TRY(exporter::bind(*source.checkpoint, *assistant));
    return {};
  }
  TRY_ASSIGN(const spec::Config config, spec::read_config(texts.config, source.config_name));
  TRY(exporter::compile_tokenizer(texts, config));
  if (texts.generation_config) {
    TRY(text::read_generation_config(*texts.generation_config, source.generation_name,
                                     config.vocabulary));
  }
  TRY(exporter::bind(*source.checkpoint, config));
  return {};
}

Result<void> read_pins(std::string_view input) {
  TRY(artifact::read_pins(input, "sources.json"));
  return {};
}

Result<void> read_tokenizer(std::string_view input) {
  const auto table = text::compile_tokenizer(input, "tokenizer.json");
  if (!table) return tl::unexpected(table.error());
  require(text::Tokenizer::load(*table).has_value());
  return {};
}

Result<void> read_generation_config(std::string_view input) {
  const auto config = text::read_generation_config(input, "generation_config.json", 1000);
  if (!config) return tl::unexpected(config.error());
  for (const uint32_t id : config->stop_ids) require(id < 1000);
  return {};
}

constexpr FuzzTarget targets[] = {
    {"assistant_config", read_assistant_config},
    {"config", read_config},
    {"generation_config", read_generation_config},
    {"gguf", read_gguf},
    {"gguf_source", read_gguf_source},
    {"manifest", read_manifest},
    {"receipt", read_receipt},
    {"safetensors", read_safetensors},
    {"sources", read_pins},
    {"tokenizer", read_tokenizer},
};

}  // namespace

std::span<const FuzzTarget> fuzz_targets() { return targets; }

}  // namespace tandem::test
