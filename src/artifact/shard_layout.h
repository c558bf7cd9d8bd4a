// Where planes lie in a shard. A shard is a safetensors file: planes in order, each an entry
// NAME.PLANE that begins at a multiple of 16; what remains between two planes is an entry padding.N
// of zeros. The whole header follows from the planes, so that it can be made again from a manifest
// and compared.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "artifact/safetensors.h"
#include "spec/layout.h"

namespace tandem::artifact {

inline constexpr uint64_t plane_alignment = 16;

struct ShardLayout {
  std::string header;                     // the file's first bytes
  std::vector<SafetensorsEntry> entries;  // planes and padding, with their offsets
  uint64_t bytes = 0;                     // of the file
};

// "layers.0.qkv.quants", the plane's name in shards and for a WeightSink.
std::string plane_name(const std::string& tensor, std::string_view plane);

// The safetensors entry of a plane of a matrix.
SafetensorsEntry plane_entry(const std::string& tensor, const spec::PlaneLayout& plane,
                             uint32_t rows);

bool is_padding(const SafetensorsEntry& entry);

// Lays out planes in the given order.
ShardLayout lay_out_shard(const std::vector<SafetensorsEntry>& planes);

}  // namespace tandem::artifact
