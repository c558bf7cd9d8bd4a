#include "exporter/checkpoint.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "artifact/safetensors.h"
#include "base/error.h"
#include "base/half.h"
#include "base/json.h"
#include "exporter/ggml_blocks.h"

namespace tandem::exporter {
namespace {

constexpr uint64_t max_index_bytes = 64 << 20;

Result<std::map<std::string, std::string>> read_index(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / index_file;
  TRY_ASSIGN(const std::string text, read_file(path, max_index_bytes, Links::follow));
  Json json;
  TRY_ASSIGN(JsonObject object, open_json_object(text, path.string(), json));
  object.skip("metadata");  // free text, and a total size that published checkpoints get wrong
  TRY_ASSIGN(JsonObject weight_map, object.get<JsonObject>("weight_map"));
  TRY(object.finish());
  std::map<std::string, std::string> index;
  for (const std::string& tensor : weight_map.keys()) {
    TRY_ASSIGN(index[tensor], weight_map.get<std::string>(tensor));
  }
  return index;
}

// Weights that lie in the folder and would not be read.
Result<void> refuse_stray_files(const std::filesystem::path& folder,
                                const std::set<std::string>& expected, std::string_view listed_by) {
  std::error_code error;
  std::set<std::string> stray;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (entry->path().extension() == ".safetensors" && !expected.contains(name)) stray.insert(name);
  }
  if (error)
    return fail(ErrorCode::io, "{}: cannot list the folder: {}", folder.string(), error.message());
  if (stray.empty()) return {};
  return fail(ErrorCode::malformed_checkpoint,
              "{}: the stray shard {} does not belong to {}; remove it", folder.string(),
              *stray.begin(), listed_by);
}

template <class T, class Widen>
void widen_each(const std::byte* bytes, std::span<float> values, Widen widen) {
  for (size_t i = 0; i < values.size(); ++i) {
    T value;
    std::memcpy(&value, bytes + i * sizeof(value), sizeof(value));
    values[i] = widen(value);
  }
}

}  // namespace

Result<Checkpoint> Checkpoint::open(const std::filesystem::path& folder) {
  Checkpoint checkpoint;
  checkpoint.has_index_ = is_there(folder / index_file);
  if (!checkpoint.has_index_) {
    if (!is_there(folder / weights_file)) {
      return fail(ErrorCode::not_found, "{}: expected {} or {}; is it the folder of a checkpoint?",
                  folder.string(), weights_file, index_file);
    }
    TRY(refuse_stray_files(folder, {std::string(weights_file)}, weights_file));
    TRY(checkpoint.add_file(folder, std::string(weights_file), nullptr));
    return checkpoint;
  }
  TRY_ASSIGN(const WeightMap index, read_index(folder));
  std::set<std::string> files;
  for (const auto& [tensor, file] : index) {
    if (!files.insert(file).second) continue;
    TRY_ASSIGN(const std::filesystem::path path, inside(folder, file));
    if (!is_there(path)) {
      return fail(ErrorCode::not_found,
                  "{}: the shard of tensor {} by {} is missing; fetch it again", path.string(),
                  tensor, index_file);
    }
  }
  TRY(refuse_stray_files(folder, files, index_file));
  for (const std::string& file : files) TRY(checkpoint.add_file(folder, file, &index));
  TRY(checkpoint.check_index(index));
  return checkpoint;
}

Checkpoint Checkpoint::of_gguf(std::string name, File file,
                               std::map<std::string, CheckpointTensor> tensors) {
  Checkpoint checkpoint;
  checkpoint.file_names_.push_back(std::move(name));
  checkpoint.files_.push_back(std::move(file));
  checkpoint.tensors_ = std::move(tensors);
  checkpoint.sums_norms_ = true;
  return checkpoint;
}

Result<void> Checkpoint::add_file(const std::filesystem::path& folder, const std::string& name,
                                  const WeightMap* index) {
  TRY_ASSIGN(File file, File::open(folder / name, Links::follow));
  TRY_ASSIGN(std::vector<artifact::SafetensorsEntry> entries,
             artifact::read_safetensors_header(file));
  const uint32_t file_index = static_cast<uint32_t>(files_.size());
  for (artifact::SafetensorsEntry& entry : entries) {
    if (index != nullptr) {
      const auto expected = index->find(entry.name);
      if (expected == index->end()) {
        return fail(ErrorCode::malformed_checkpoint, "{}: tensor {} is not in {}", file.path(),
                    entry.name, index_file);
      }
      if (expected->second != name) {
        return fail(ErrorCode::malformed_checkpoint,
                    "{}: tensor {} lies here, but belongs to the shard {} by {}", file.path(),
                    entry.name, expected->second, index_file);
      }
    }
    tensors_[entry.name] = {entry.name, std::move(entry.dtype), std::move(entry.shape),
                            file_index, entry.offset,           entry.bytes};
  }
  file_names_.push_back(name);
  files_.push_back(std::move(file));
  return {};
}

Result<void> Checkpoint::check_index(const WeightMap& index) const {
  for (const auto& [tensor, file] : index) {
    if (!tensors_.contains(tensor)) {
      return fail(ErrorCode::malformed_checkpoint,
                  "{}: tensor {} is missing, although {} says that it is here", file, tensor,
                  index_file);
    }
  }
  return {};
}

Result<void> Checkpoint::read(const CheckpointTensor& tensor, uint64_t offset,
                              std::span<std::byte> bytes) const {
  return files_[tensor.file].read(tensor.offset + offset, bytes);
}

uint32_t value_bytes(std::string_view dtype) {
  if (dtype == "BF16" || dtype == "F16") return 2;
  if (dtype == "F32" || dtype == "I32") return 4;
  return dtype == "I64" ? 8 : 0;
}

bool holds_ids(std::string_view dtype) { return dtype == "I64" || dtype == "I32"; }

uint64_t row_bytes(std::string_view dtype, uint64_t columns) {
  if (!is_quantized(dtype)) return columns * value_bytes(dtype);
  const BlockType& type = *block_type(dtype);
  return columns / type.values * type.bytes;
}

void widen(std::string_view dtype, const std::byte* bytes, std::span<float> values) {
  if (is_quantized(dtype)) return widen_blocks(dtype, bytes, values);
  if (dtype == "F32") {
    std::memcpy(values.data(), bytes, values.size_bytes());
    return;
  }
  if (dtype == "BF16") {
    widen_each<uint16_t>(bytes, values, [](uint16_t bits) { return from_bf16(bits); });
  }
  if (dtype == "F16") {
    widen_each<uint16_t>(bytes, values, [](uint16_t bits) { return from_half(bits); });
  }
  const auto id = [](auto value) { return static_cast<float>(value); };
  if (dtype == "I32") widen_each<int32_t>(bytes, values, id);
  if (dtype == "I64") widen_each<int64_t>(bytes, values, id);
}

}  // namespace tandem::exporter
