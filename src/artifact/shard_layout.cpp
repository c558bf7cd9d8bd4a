#include "artifact/shard_layout.h"

#include <fmt/format.h>

namespace tandem::artifact {
namespace {

constexpr std::string_view padding_prefix = "padding.";

}  // namespace

std::string plane_name(const std::string& tensor, std::string_view plane) {
  return fmt::format("{}.{}", tensor, plane);
}

SafetensorsEntry plane_entry(const std::string& tensor, const spec::PlaneLayout& plane,
                             uint32_t rows) {
  const uint64_t element_bytes = plane.dtype == "U8" ? 1 : plane.dtype == "F16" ? 2 : 4;
  return {plane_name(tensor, plane.suffix),
          std::string(plane.dtype),
          {rows, plane.bytes_per_row / element_bytes},
          0,
          rows * plane.bytes_per_row};
}

bool is_padding(const SafetensorsEntry& entry) { return entry.name.starts_with(padding_prefix); }

ShardLayout lay_out_shard(const std::vector<SafetensorsEntry>& planes) {
  ShardLayout layout;
  uint64_t end = 0;
  uint32_t paddings = 0;
  for (const SafetensorsEntry& plane : planes) {
    if (end % plane_alignment != 0) {
      const uint64_t bytes = plane_alignment - end % plane_alignment;
      layout.entries.push_back(
          {fmt::format("{}{}", padding_prefix, paddings++), "U8", {bytes}, 0, bytes});
      end += bytes;
    }
    layout.entries.push_back(plane);
    end += plane.bytes;
  }
  layout.header = make_safetensors_header(layout.entries);
  layout.bytes = layout.header.size() + end;
  return layout;
}

}  // namespace tandem::artifact
