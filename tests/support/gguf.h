// GGUF files for tests, with a writer and a reading of the block formats of their own, so that
// tests do not lean on the code they test. Programs that use it list ../support/gguf.cpp and
// ../support/checkpoint.cpp among their sources and import spec.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "support/checkpoint.h"

namespace tandem::test {

// A metadata value: the type's id, 4 bytes, and the value.
std::string gguf_u32(uint32_t value);
std::string gguf_i32(int32_t value);
std::string gguf_u64(uint64_t value);
std::string gguf_f32(float value);
std::string gguf_bool(bool value);
std::string gguf_text(std::string_view value);
std::string gguf_texts(const std::vector<std::string>& values);
std::string gguf_array(
    const std::vector<std::string>& values);  // of one type, as made by the above

struct GgufTensorData {
  std::string name;
  uint32_t type = 0;            // GGML's id
  std::vector<uint64_t> shape;  // outermost first
  std::string bytes;
};

struct GgufContent {
  std::vector<std::pair<std::string, std::string>> metadata;
  std::vector<GgufTensorData> tensors;
  uint64_t alignment = 32;

  std::string& value(std::string_view key);
  void remove(std::string_view key);
  GgufTensorData& tensor(std::string_view name);
};

std::string write_gguf(const GgufContent& content);

// The values of blocks, in double and by the letter of the format.
std::vector<double> block_values(std::string_view type, std::string_view bytes);
// Random blocks, which lie exactly on the artifact's own grid where the type is Q4_0 or Q8_0: each
// holds a value of the largest magnitude.
std::string random_blocks(std::string_view type, uint64_t values, uint64_t seed);
uint32_t block_columns(std::string_view type);  // 1 for F32, F16 and BF16

// A checkpoint as llama.cpp's converter would write it: geometry and names from the config.json,
// tokens from the tokenizer.json, tensors under GGUF's names with the bytes that they have.
GgufContent gguf_checkpoint(std::string_view config_json, std::string_view tokenizer_json,
                            std::string_view chat_template,
                            const std::vector<CheckpointTensor>& tensors);

// Makes the matrices of a checkpoint random blocks of a type, where their columns are whole blocks
// of it, and the vectors F32. The dtypes are GGML's then.
std::vector<CheckpointTensor> in_blocks(std::vector<CheckpointTensor> tensors,
                                        std::string_view type);
// The same weights as F32.
std::vector<CheckpointTensor> in_floats(std::vector<CheckpointTensor> tensors);

}  // namespace tandem::test
