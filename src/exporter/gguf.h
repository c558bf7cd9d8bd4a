// The GGUF file format, versions 2 and 3, little-endian: a header of metadata and descriptions of
// tensors, then the data of all tensors, each at a multiple of the alignment. Reads and checks
// headers; what they mean is not known here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"
#include "base/json.h"

namespace tandem::exporter {

struct GgufTensor {
  std::string name;
  std::string type;             // by its name in GGML: "F32", "Q4_K", ...
  std::vector<uint64_t> shape;  // outermost first: [rows, columns] for a matrix
  uint64_t offset = 0;          // in the file
  uint64_t bytes = 0;
};

struct Gguf {
  // An object, key to value. A number that is stored as an f32 has the shortest decimal that names
  // it: 1e-6, not 9.999999974752427e-07.
  Json metadata;
  std::vector<GgufTensor> tensors;  // in the order of their data
};

// Refused as malformed_checkpoint, by the names of file and key or tensor: counts, lengths and
// offsets beyond the file, keys and tensors that are there twice, text that is not UTF-8, types
// that the format does not have, and data that overlaps, leaves holes, or ends behind the file or
// before it. Refused as unsupported: other versions and big-endian files.
Result<Gguf> read_gguf(const File& file);
Result<Gguf> read_gguf(std::span<const std::byte> bytes, std::string_view where);

}  // namespace tandem::exporter
