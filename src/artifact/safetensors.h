// The safetensors file format: 8 bytes with the length of a JSON header, the header, then the data
// of all tensors without holes. Reads and checks headers and makes headers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/files.h"
#include "tandem/error.h"

namespace tandem::artifact {

struct SafetensorsEntry {
  std::string name;
  std::string dtype;  // "F32", "BF16", ...
  std::vector<uint64_t> shape;
  uint64_t offset = 0;  // in the file
  uint64_t bytes = 0;
};

// The entries of a file in the order of their data. Refused as malformed_checkpoint, by the names
// of file and tensor: a header that is not what the format says, sizes that contradict shapes, and
// data that overlaps, has holes, ends behind the file or before it.
Result<std::vector<SafetensorsEntry>> read_safetensors_header(const File& file);

// Sets the offsets of entries whose data follow one another in this order, and returns the file's
// bytes before the first of them, padded with spaces so that the data begin at a multiple of 16.
std::string make_safetensors_header(std::span<SafetensorsEntry> entries);

}  // namespace tandem::artifact
