// Writes a checkpoint with a real model's tensors, for measuring exports at full size:
//
//   bench_checkpoint config.json FOLDER [BYTES]
//
// Names and shapes are the registry's, all BF16. The weights repeat one pattern that lies on the
// Q4_0 grid, as those of QAT checkpoints do. BYTES are those of two towers for images and audio,
// which an export leaves out.
#include "exporter/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <string>
#include <string_view>
#include <vector>

#include "artifact/safetensors.h"
#include "base/error.h"
#include "base/files.h"
#include "base/publication.h"
#include "exporter/metadata.h"
#include "exporter/synthetic_tokenizer.h"
#include "spec/tensors.h"

namespace {

using namespace tandem;
using artifact::SafetensorsEntry;

// Each block begins with -8 steps of its scale, so that Q4_0 finds that scale again.
std::vector<uint16_t> on_grid_pattern() {
  std::vector<uint16_t> pattern(4 << 20);
  uint32_t random = 1;
  float scale = 0;
  for (size_t i = 0; i < pattern.size(); ++i) {
    random = random * 1664525 + 1013904223;
    const bool first = i % spec::block_columns == 0;
    if (first) scale = static_cast<float>(8 + (random >> 29)) * 0x1p-11f;
    const int steps = first ? -8 : static_cast<int>(random >> 28) - 8;
    const float value = scale * static_cast<float>(steps);
    pattern[i] = static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16);
  }
  return pattern;
}

std::vector<SafetensorsEntry> entries(const spec::Config& config, uint64_t tower_bytes) {
  std::vector<SafetensorsEntry> result;
  for (const spec::Tensor& tensor : spec::tensors(config)) {
    for (const spec::Source& source : tensor.sources) {
      std::vector<uint64_t> shape = {source.rows, source.columns};
      if (tensor.tensor_class == spec::TensorClass::vector) shape = {source.columns};
      result.push_back({"model.language_model." + source.name, "BF16", std::move(shape), 0,
                        uint64_t{2} * source.rows * source.columns});
    }
  }
  for (const char* tower : {"model.audio_tower.weights", "model.vision_tower.weights"}) {
    if (tower_bytes > 0)
      result.push_back({tower, "BF16", {tower_bytes / 4}, 0, tower_bytes / 4 * 2});
  }
  std::sort(result.begin(), result.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  return result;
}

Result<void> write(Publication& folder, std::string_view name, std::string_view text) {
  TRY_ASSIGN(OutputFile file, folder.create(name));
  TRY(file.write(text));
  return file.close();
}

Result<void> write_weights(Publication& folder, std::vector<SafetensorsEntry> tensors) {
  const std::vector<uint16_t> pattern = on_grid_pattern();
  const std::span<const std::byte> bytes = std::as_bytes(std::span(pattern));
  TRY_ASSIGN(OutputFile file, folder.create(exporter::weights_file));
  TRY(file.write(artifact::make_safetensors_header(tensors)));
  for (const SafetensorsEntry& tensor : tensors) {
    for (uint64_t done = 0; done < tensor.bytes; done += bytes.size())
      TRY(file.write(bytes.first(std::min<uint64_t>(bytes.size(), tensor.bytes - done))));
  }
  return file.close();
}

Result<void> write_checkpoint(const char* config_path, const char* out, uint64_t tower_bytes) {
  TRY_ASSIGN(const std::string text, read_file(config_path, 1 << 20));
  TRY_ASSIGN(const spec::Config config, spec::read_config(text, config_path));
  TRY_ASSIGN(Publication folder, Publication::begin(out));
  TRY(write(folder, exporter::config_file, text));
  TRY(write(folder, exporter::tokenizer_file, exporter::synthetic_tokenizer(config)));
  TRY(write_weights(folder, entries(config, tower_bytes)));
  return folder.commit();
}

}  // namespace

int main(int argc, char** argv) {
  uint64_t tower_bytes = 0;
  const std::string_view bytes = argc == 4 ? argv[3] : "0";
  const auto read = std::from_chars(bytes.data(), bytes.data() + bytes.size(), tower_bytes);
  if (argc < 3 || argc > 4 || read.ec != std::errc() || read.ptr != bytes.data() + bytes.size()) {
    fmt::print(stderr, "usage: bench_checkpoint config.json FOLDER [BYTES of towers]\n");
    return 2;
  }
  const auto written = write_checkpoint(argv[1], argv[2], tower_bytes);
  if (!written) fmt::print(stderr, "bench_checkpoint: {}\n", written.error().message);
  return written ? 0 : 1;
}
