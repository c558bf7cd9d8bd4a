// The weights of a checkpoint: of a Hugging Face folder, in model.safetensors or the shards that
// model.safetensors.index.json names, or of a GGUF file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"
#include "spec/layout.h"
#include "tandem/error.h"

namespace tandem::exporter {

inline constexpr std::string_view weights_file = "model.safetensors";
inline constexpr std::string_view index_file = "model.safetensors.index.json";

struct CheckpointTensor {
  std::string name;   // as the file spells it
  std::string dtype;  // "BF16", "F16", "F32", "I64", or any other of the format
  std::vector<uint64_t> shape;
  uint32_t file = 0;  // index in Checkpoint::files
  uint64_t offset = 0;
  uint64_t bytes = 0;
  // The type to keep it in, where the file's own is a choice to respect: that of a GGUF file.
  std::optional<spec::WeightType> kept = std::nullopt;
};

class Checkpoint {
 public:
  // Checks all headers and, if there is one, the index: a shard that is missing or that the index
  // does not name, and a tensor that is missing, lies in another shard than the index says, or is
  // not in the index are each refused.
  static Result<Checkpoint> open(const std::filesystem::path& folder);

  // A GGUF file, its tensors by their names in a Hugging Face checkpoint.
  static Checkpoint of_gguf(std::string name, File file,
                            std::map<std::string, CheckpointTensor> tensors);

  // By name, in the words of Hugging Face whatever the file calls them.
  const std::map<std::string, CheckpointTensor>& tensors() const { return tensors_; }
  const std::vector<File>& files() const { return files_; }
  const std::vector<std::string>& file_names() const { return file_names_; }
  bool has_index() const { return has_index_; }
  // Whether weights of norms are sums with what their norm adds (spec::Tensor::offset), as in GGUF.
  bool sums_norms() const { return sums_norms_; }

  // Fills `bytes` with a tensor's data from `offset` on.
  Result<void> read(const CheckpointTensor& tensor, uint64_t offset,
                    std::span<std::byte> bytes) const;

 private:
  using WeightMap = std::map<std::string, std::string>;  // tensor to file

  Result<void> add_file(const std::filesystem::path& folder, const std::string& name,
                        const WeightMap* index);
  Result<void> check_index(const WeightMap& index) const;

  bool has_index_ = false;
  bool sums_norms_ = false;
  std::vector<std::string> file_names_;
  std::vector<File> files_;
  std::map<std::string, CheckpointTensor> tensors_;
};

// The bytes of a value of a dtype that weights or token ids can have one by one; 0 for any other.
uint32_t value_bytes(std::string_view dtype);
bool holds_ids(std::string_view dtype);  // rather than weights

// The bytes of a row of such a dtype, or of a quantized one (exporter/ggml_blocks.h).
uint64_t row_bytes(std::string_view dtype, uint64_t columns);

// Widens `values.size()` values of such a row, exactly (ids: up to 2^24, beyond to the nearest).
void widen(std::string_view dtype, const std::byte* bytes, std::span<float> values);

}  // namespace tandem::exporter
