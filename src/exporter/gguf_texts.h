// What a GGUF file's metadata say of a Gemma, as llama.cpp's converter writes them, in the form of
// the texts of a Hugging Face folder (docs/gguf.md).
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "exporter/checkpoint.h"
#include "exporter/metadata.h"

namespace tandem::exporter {

// The tokens that a config names.
struct GgufTokens {
  uint32_t bos = 0;
  uint32_t pad = 0;
  std::vector<uint32_t> eos;
};

// general.architecture, which must be a Gemma's that is built.
Result<std::string> gguf_architecture(JsonObject& metadata);

// A config.json with the geometry. Some of it is in the tensors alone: the vocabulary, the rotated
// pairs, whether keys are values. Refused: keys of the architecture that are not known, and
// whatever contradicts itself.
Result<std::string> gguf_config(JsonObject& metadata, const GgufTokens& tokens,
                                const Checkpoint& checkpoint);

// All texts. One file of several is refused, too.
Result<Texts> read_gguf_texts(JsonObject& metadata, const Checkpoint& checkpoint);

}  // namespace tandem::exporter
