#include "artifact/safetensors.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/error.h"
#include "base/json.h"
#include "base/publication.h"

namespace tandem::artifact {
namespace {

constexpr uint64_t length_bytes = 8;
constexpr uint64_t max_header_bytes = 100'000'000;  // the format's own bound
constexpr uint64_t data_alignment = 16;

std::optional<uint64_t> dtype_bytes(std::string_view dtype) {
  constexpr std::pair<std::string_view, uint64_t> sizes[] = {
      {"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E4M3", 1}, {"F8_E5M2", 1},
      {"I16", 2},  {"U16", 2}, {"F16", 2}, {"BF16", 2},    {"I32", 4},
      {"U32", 4},  {"F32", 4}, {"I64", 8}, {"U64", 8},     {"F64", 8}};
  for (const auto& [name, bytes] : sizes) {
    if (name == dtype) return bytes;
  }
  return std::nullopt;
}

// Empty if the product does not fit 64 bits.
std::optional<uint64_t> data_bytes(const std::vector<uint64_t>& shape, uint64_t element_bytes) {
  uint64_t bytes = element_bytes;
  for (const uint64_t extent : shape) {
    if (__builtin_mul_overflow(bytes, extent, &bytes)) return std::nullopt;
  }
  return bytes;
}

Result<SafetensorsEntry> read_entry(const std::string& path, JsonObject& header,
                                    const std::string& name, uint64_t data_begin,
                                    uint64_t file_bytes) {
  TRY_ASSIGN(JsonObject object, header.get<JsonObject>(name));
  SafetensorsEntry entry;
  entry.name = name;
  TRY_ASSIGN(entry.dtype, object.get<std::string>("dtype"));
  TRY_ASSIGN(entry.shape, object.get<std::vector<uint64_t>>("shape"));
  TRY_ASSIGN(const std::vector<uint64_t> range, object.get<std::vector<uint64_t>>("data_offsets"));
  TRY(object.finish());
  const std::optional<uint64_t> element_bytes = dtype_bytes(entry.dtype);
  if (!element_bytes) {
    return fail(ErrorCode::malformed_checkpoint, "{}: tensor {} has the unknown dtype {}", path,
                name, entry.dtype);
  }
  if (range.size() != 2 || range[0] > range[1]) {
    return fail(ErrorCode::malformed_checkpoint,
                "{}: tensor {}: data_offsets must be [begin, end], found [{}]", path, name,
                fmt::join(range, ", "));
  }
  if (range[1] > file_bytes - data_begin) {
    return fail(ErrorCode::malformed_checkpoint,
                "{}: tensor {} ends at byte {} of the data, but the file has only {}: it is "
                "truncated; fetch it again",
                path, name, range[1], file_bytes - data_begin);
  }
  entry.offset = data_begin + range[0];
  entry.bytes = range[1] - range[0];
  if (data_bytes(entry.shape, *element_bytes) != entry.bytes) {
    return fail(ErrorCode::malformed_checkpoint,
                "{}: tensor {}: {} [{}] does not take the {} bytes of its data_offsets", path, name,
                entry.dtype, fmt::join(entry.shape, ", "), entry.bytes);
  }
  return entry;
}

// Data must follow one another from `begin` to the end of the file.
Result<void> check_tiling(const std::string& path, std::span<const SafetensorsEntry> entries,
                          uint64_t begin, uint64_t file_bytes) {
  uint64_t end = begin;
  std::string_view before = "the header";
  for (const SafetensorsEntry& entry : entries) {
    if (entry.offset != end) {
      return fail(ErrorCode::malformed_checkpoint,
                  "{}: tensor {} begins at byte {}, {} {}, which ends at byte {}", path, entry.name,
                  entry.offset, entry.offset < end ? "inside" : "behind a hole after", before, end);
    }
    end = entry.offset + entry.bytes;
    before = entry.name;
  }
  if (end != file_bytes) {
    return fail(ErrorCode::malformed_checkpoint, "{}: {} bytes trail the last tensor, {}", path,
                file_bytes - end, before);
  }
  return {};
}

}  // namespace

Result<std::vector<SafetensorsEntry>> read_safetensors_header(const File& file) {
  const std::string& path = file.path();
  uint64_t header_bytes = 0;
  if (file.size() < length_bytes) {
    return fail(ErrorCode::malformed_checkpoint, "{}: {} bytes are too few for a safetensors file",
                path, file.size());
  }
  TRY(file.read(0, std::as_writable_bytes(std::span(&header_bytes, 1))));
  if (header_bytes > max_header_bytes || header_bytes > file.size() - length_bytes) {
    return fail(ErrorCode::malformed_checkpoint,
                "{}: a header of {} bytes does not fit the file of {} (at most {})", path,
                header_bytes, file.size(), max_header_bytes);
  }
  std::string text(header_bytes, '\0');
  TRY(file.read(length_bytes, std::as_writable_bytes(std::span(text))));
  Json json;
  TRY_ASSIGN(JsonObject header, open_json_object(text, path, json));
  const uint64_t data_begin = length_bytes + header_bytes;
  std::vector<SafetensorsEntry> entries;
  for (const std::string& name : header.keys()) {
    if (name == "__metadata__") continue;  // free text
    TRY_ASSIGN(SafetensorsEntry entry, read_entry(path, header, name, data_begin, file.size()));
    entries.push_back(std::move(entry));
  }
  std::sort(entries.begin(), entries.end(),
            [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
              return std::pair(a.offset, a.bytes) < std::pair(b.offset, b.bytes);
            });
  TRY(check_tiling(path, entries, data_begin, file.size()));
  return entries;
}

std::string make_safetensors_header(std::span<SafetensorsEntry> entries) {
  Json header = Json::object();
  uint64_t end = 0;
  for (SafetensorsEntry& entry : entries) {
    header[entry.name] = {
        {"dtype", entry.dtype}, {"shape", entry.shape}, {"data_offsets", {end, end + entry.bytes}}};
    entry.offset = end;
    end += entry.bytes;
  }
  std::string text = header.dump(-1, ' ', false, Json::error_handler_t::replace);
  const uint64_t unaligned = (length_bytes + text.size()) % data_alignment;
  if (unaligned != 0) text.append(data_alignment - unaligned, ' ');
  const uint64_t header_bytes = text.size();
  for (SafetensorsEntry& entry : entries) entry.offset += length_bytes + header_bytes;
  std::string result(length_bytes, '\0');
  std::memcpy(result.data(), &header_bytes, length_bytes);
  return result + text;
}

}  // namespace tandem::artifact
