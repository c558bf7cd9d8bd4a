// Synthetic checkpoints: a random tiny Gemma 4 in the form of a Hugging Face folder, with every
// tensor that the registry asks for. The same seed gives the same bytes. Programs that use it list
// ../support/checkpoint.cpp among their sources and import spec.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::test {

// The shape of a tiny model. Every third layer and the last are full, the others sliding; head_dim
// is 16 in sliding and 32 in full layers; hidden 64, 4 query heads, MLP 96.
struct TinyShape {
  uint32_t layers = 6;
  uint32_t kv_shared = 2;  // the last layers; each kind among them needs an owning layer before
  uint32_t kv_heads = 2;
  uint32_t window = 8;
  uint32_t per_layer_input = 32;  // 0: none
  uint32_t vocabulary = 512;
  uint32_t max_positions = 256;
  bool k_eq_v = false;
  bool double_wide_mlp = true;
};

// The text of its config.json, in Hugging Face's form.
std::string tiny_config(const TinyShape& shape = {});

// The same of an assistant for such a model: one sliding and one full layer, hidden 32, 4 query
// heads, MLP 64; with ordered embeddings 16 centroids, of which the top 3 count.
std::string tiny_assistant_config(const TinyShape& target = {}, bool ordered = true);

// The text of the config.json of a tiny Gemma 3: 7 layers, of which the 6th is full, hidden 64, 4
// query heads, 2 KV heads, head_dim 16, MLP 96, a window of 8, queries scaled by 24^-1/2, full
// layers scaled by 8.
std::string tiny_gemma3_config();

struct CheckpointTensor {
  std::string name;
  std::string dtype;
  std::vector<uint64_t> shape;
  std::vector<std::byte> bytes;
};

struct CheckpointOptions {
  uint64_t seed = 1;
  std::string dtype = "BF16";  // or "F32", "F16"
  std::string prefix = "model.";
  uint32_t shards = 1;  // 1: model.safetensors; more: model-0000N-of-0000M.safetensors and an index
};

// All source tensors of the config. Matrices and tables are scaled so that activations keep their
// size; norm weights and layer scalars lie around 1.
std::vector<CheckpointTensor> random_tensors(std::string_view config_json,
                                             const CheckpointOptions& options = {});

// All source tensors of an assistant's config; the token ordering is the vocabulary backwards.
std::vector<CheckpointTensor> random_assistant_tensors(std::string_view config_json,
                                                       const CheckpointOptions& options = {});

// Writes one safetensors file.
void write_safetensors(const std::filesystem::path& path,
                       const std::vector<CheckpointTensor>& tensors);

// Writes a whole checkpoint folder (made if missing): config.json, the weights,
// generation_config.json, chat_template.jinja, and a tokenizer.json of bytes and single letters.
void write_checkpoint(const std::filesystem::path& folder, std::string_view config_json,
                      const std::vector<CheckpointTensor>& tensors, uint32_t shards = 1);
void write_checkpoint(const std::filesystem::path& folder, std::string_view config_json,
                      const CheckpointOptions& options = {});

// Writes a checkpoint folder whose weights are zeros that take no room on the disk, however many.
void write_zero_checkpoint(const std::filesystem::path& folder, std::string_view config_json);

// A new empty folder under the system's temporary folder, removed with its content at the end.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

void write_file(const std::filesystem::path& path, std::string_view bytes);
std::string read_file(const std::filesystem::path& path);

}  // namespace tandem::test
