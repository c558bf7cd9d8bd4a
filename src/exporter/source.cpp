#include "exporter/source.h"

#include "base/error.h"

namespace tandem::exporter {
namespace {

constexpr uint64_t max_text_bytes = 256 << 20;

Result<std::string> read_text(const std::filesystem::path& folder, std::string_view name,
                              Source& source) {
  TRY_ASSIGN(std::string text, read_file(folder / name, max_text_bytes, Links::follow));
  source.text_files.push_back(bound(name, text));
  return text;
}

Result<std::optional<std::string>> read_optional(const std::filesystem::path& folder,
                                                 std::string_view name, Source& source) {
  if (!is_there(folder / name)) return std::nullopt;
  return read_text(folder, name, source);
}

Result<Source> open_folder_source(const std::filesystem::path& folder) {
  Source source;
  source.config_name = (folder / config_file).string();
  source.tokenizer_name = (folder / tokenizer_file).string();
  source.generation_name = (folder / generation_file).string();
  TRY_ASSIGN(source.texts.config, read_text(folder, config_file, source));
  TRY_ASSIGN(source.texts.tokenizer, read_text(folder, tokenizer_file, source));
  TRY_ASSIGN(source.texts.chat_template, read_optional(folder, template_file, source));
  TRY_ASSIGN(source.texts.generation_config, read_optional(folder, generation_file, source));
  TRY_ASSIGN(Checkpoint checkpoint, Checkpoint::open(folder));
  if (checkpoint.has_index()) TRY(read_text(folder, index_file, source));
  source.checkpoint = std::make_unique<const Checkpoint>(std::move(checkpoint));
  return source;
}

}  // namespace

Result<Source> open_source(const std::filesystem::path& path) {
  std::error_code error;
  const bool is_file = std::filesystem::is_regular_file(path, error);
  return is_file ? open_gguf_source(path) : open_folder_source(path);
}

}  // namespace tandem::exporter
