#include "exporter/gguf.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <set>

#include "base/error.h"
#include "exporter/ggml_blocks.h"
#include "text/utf8.h"

namespace tandem::exporter {
namespace {

constexpr uint64_t max_header_bytes = 100'000'000;  // five times those of Gemma
constexpr uint64_t max_elements = 1 << 24;          // of an array
constexpr uint32_t max_depth = 4;                   // of arrays in arrays
constexpr uint32_t max_dimensions = 4;
constexpr uint64_t default_alignment = 32;
constexpr std::string_view alignment_key = "general.alignment";

// The types of metadata values.
enum Type : uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, string, array, u64, i64, f64 };

// The fewest bytes that a value of a type takes.
constexpr uint64_t least_bytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 8, 12, 8, 8, 8};
constexpr uint64_t least_key_bytes = 8 + 1 + 4 + 1;             // length, name, type, value
constexpr uint64_t least_tensor_bytes = 8 + 1 + 4 + 8 + 4 + 8;  // one dimension

using ReadAt = std::function<Result<void>(uint64_t offset, std::span<std::byte>)>;

// Reads the header from its beginning. Messages name what is being read.
class Cursor {
 public:
  Cursor(std::string where, uint64_t file_bytes, ReadAt read)
      : where_(std::move(where)), file_bytes_(file_bytes), read_(std::move(read)) {}

  uint64_t position() const { return position_; }
  uint64_t left() const { return std::min(file_bytes_, max_header_bytes) - position_; }
  void begin(std::string part) { part_ = std::move(part); }

  template <class... Args>
  tl::unexpected<Error> refuse(fmt::format_string<Args...> format, Args&&... args) const {
    return fail(ErrorCode::malformed_checkpoint, "{}: {}: {}", where_, part_,
                fmt::format(format, std::forward<Args>(args)...));
  }

  Result<void> take(std::span<std::byte> bytes) {
    if (bytes.size() > left()) {
      return refuse("{} bytes are wanted at byte {}, where the {} ends after {}: it is damaged",
                    bytes.size(), position_,
                    file_bytes_ > max_header_bytes ? "largest header" : "file", left());
    }
    if (position_ + bytes.size() > buffer_begin_ + buffer_.size()) TRY(fill(bytes.size()));
    std::memcpy(bytes.data(), &buffer_[position_ - buffer_begin_], bytes.size());
    position_ += bytes.size();
    return {};
  }

  template <class T>
  Result<T> number() {
    T value;
    TRY(take(std::as_writable_bytes(std::span(&value, 1))));
    return value;
  }

  // A count of things that take at least so many bytes each.
  Result<uint64_t> count(std::string_view what, uint64_t least) {
    TRY_ASSIGN(const uint64_t count, number<uint64_t>());
    if (count > left() / least) {
      return refuse("there is no room for {} {} in the {} bytes that are left", count, what,
                    left());
    }
    return count;
  }

  Result<std::string> text() {
    TRY_ASSIGN(const uint64_t size, count("bytes of text", 1));
    std::string text(size, '\0');
    if (size > 0) TRY(take(std::as_writable_bytes(std::span(text))));
    if (text::valid_utf8(text) != text.size()) return refuse("text that is not UTF-8");
    return text;
  }

 private:
  Result<void> fill(uint64_t least) {
    constexpr uint64_t buffer_bytes = 1 << 20;
    buffer_begin_ = position_;
    buffer_.resize(std::min(std::max(least, buffer_bytes), left()));
    return read_(buffer_begin_, buffer_);
  }

  std::string where_;
  std::string part_ = "header";
  uint64_t file_bytes_;
  ReadAt read_;
  uint64_t position_ = 0;
  uint64_t buffer_begin_ = 0;
  std::vector<std::byte> buffer_;
};

template <class T>
Result<Json> read_integer(Cursor& cursor) {
  TRY_ASSIGN(const T value, cursor.number<T>());
  if constexpr (std::is_signed_v<T>) {
    if (value < 0) return Json(int64_t{value});
  }
  return Json(static_cast<uint64_t>(value));
}

Result<Json> read_f32(Cursor& cursor) {
  TRY_ASSIGN(const float value, cursor.number<float>());
  if (!std::isfinite(value)) return Json(double{value});
  return Json(Json::parse(fmt::format("{}", value)).get<double>());
}

Result<Json> read_value(Cursor& cursor, uint32_t type, uint32_t depth);

Result<Json> read_array(Cursor& cursor, uint32_t depth) {
  if (depth == max_depth) return cursor.refuse("arrays lie in arrays more than {} deep", max_depth);
  TRY_ASSIGN(const uint32_t type, cursor.number<uint32_t>());
  if (type >= std::size(least_bytes)) return cursor.refuse("values have the unknown type {}", type);
  TRY_ASSIGN(const uint64_t count, cursor.count("values", least_bytes[type]));
  if (count > max_elements) {
    return cursor.refuse("an array of {} values: at most {} are read", count, max_elements);
  }
  Json::array_t values;
  values.reserve(count);
  for (uint64_t i = 0; i < count; ++i) {
    TRY_ASSIGN(Json value, read_value(cursor, type, depth + 1));
    values.push_back(std::move(value));
  }
  return Json(std::move(values));
}

Result<Json> read_value(Cursor& cursor, uint32_t type, uint32_t depth) {
  switch (type) {
    case u8:
      return read_integer<uint8_t>(cursor);
    case i8:
      return read_integer<int8_t>(cursor);
    case u16:
      return read_integer<uint16_t>(cursor);
    case i16:
      return read_integer<int16_t>(cursor);
    case u32:
      return read_integer<uint32_t>(cursor);
    case i32:
      return read_integer<int32_t>(cursor);
    case u64:
      return read_integer<uint64_t>(cursor);
    case i64:
      return read_integer<int64_t>(cursor);
    case f32:
      return read_f32(cursor);
    case f64:
      return cursor.number<double>().map([](double value) { return Json(value); });
    case boolean: {
      TRY_ASSIGN(const uint8_t value, cursor.number<uint8_t>());
      if (value > 1) return cursor.refuse("a bool must be 0 or 1, found {}", value);
      return Json(value == 1);
    }
    case string:
      return cursor.text().map([](std::string&& text) { return Json(std::move(text)); });
    case array:
      return read_array(cursor, depth);
    default:
      return cursor.refuse("the value has the unknown type {}", type);
  }
}

Result<Json> read_metadata(Cursor& cursor, uint64_t count) {
  Json metadata = Json::object();
  for (uint64_t i = 0; i < count; ++i) {
    cursor.begin(fmt::format("metadata key {}", i));
    TRY_ASSIGN(const std::string key, cursor.text());
    if (key.empty()) return cursor.refuse("it has no name");
    cursor.begin(key);
    if (metadata.contains(key)) return cursor.refuse("the key is there twice");
    TRY_ASSIGN(const uint32_t type, cursor.number<uint32_t>());
    TRY_ASSIGN(metadata[key], read_value(cursor, type, 0));
  }
  return metadata;
}

Result<uint64_t> read_alignment(const Cursor& cursor, const Json& metadata) {
  const auto found = metadata.find(alignment_key);
  if (found == metadata.end()) return default_alignment;
  const bool is_power = found->is_number_unsigned() &&
                        std::has_single_bit(found->get<uint64_t>()) &&
                        found->get<uint64_t>() <= max_header_bytes;
  if (is_power) return found->get<uint64_t>();
  return cursor.refuse("{}: expected a power of two, found {}", alignment_key,
                       found->dump(-1, ' ', false, Json::error_handler_t::replace));
}

// Of whole blocks along the innermost dimension.
Result<uint64_t> data_bytes(const Cursor& cursor, const BlockType& type,
                            const std::vector<uint64_t>& shape) {
  if (shape.back() % type.values != 0) {
    return cursor.refuse("rows of {} values are no whole blocks of {}, which has {} in each",
                         shape.back(), type.name, type.values);
  }
  uint64_t bytes = type.bytes;
  for (size_t i = 0; i < shape.size(); ++i) {
    const uint64_t extent = i + 1 == shape.size() ? shape[i] / type.values : shape[i];
    if (extent == 0) return cursor.refuse("it has no values: [{}]", fmt::join(shape, ", "));
    if (__builtin_mul_overflow(bytes, extent, &bytes)) {
      return cursor.refuse("[{}] is larger than any file", fmt::join(shape, ", "));
    }
  }
  return bytes;
}

// The offset counts from the beginning of the data.
Result<GgufTensor> read_tensor(Cursor& cursor, uint64_t index) {
  cursor.begin(fmt::format("tensor {}", index));
  GgufTensor tensor;
  TRY_ASSIGN(tensor.name, cursor.text());
  if (tensor.name.empty()) return cursor.refuse("it has no name");
  cursor.begin("tensor " + tensor.name);
  TRY_ASSIGN(const uint32_t dimensions, cursor.number<uint32_t>());
  if (dimensions == 0 || dimensions > max_dimensions) {
    return cursor.refuse("expected 1 to {} dimensions, found {}", max_dimensions, dimensions);
  }
  tensor.shape.resize(dimensions);
  for (uint64_t& extent : tensor.shape) {
    TRY_ASSIGN(extent, cursor.number<uint64_t>());
  }
  std::reverse(tensor.shape.begin(), tensor.shape.end());
  TRY_ASSIGN(const uint32_t id, cursor.number<uint32_t>());
  const BlockType* type = block_type(id);
  if (type == nullptr) return cursor.refuse("it has the unknown type {}", id);
  tensor.type = type->name;
  TRY_ASSIGN(tensor.bytes, data_bytes(cursor, *type, tensor.shape));
  TRY_ASSIGN(tensor.offset, cursor.number<uint64_t>());
  return tensor;
}

Result<std::vector<GgufTensor>> read_tensors(Cursor& cursor, uint64_t count) {
  std::vector<GgufTensor> tensors;
  std::set<std::string, std::less<>> names;
  for (uint64_t i = 0; i < count; ++i) {
    TRY_ASSIGN(GgufTensor tensor, read_tensor(cursor, i));
    if (!names.insert(tensor.name).second) return cursor.refuse("it is there twice");
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

uint64_t align(uint64_t offset, uint64_t alignment) {
  return (offset + alignment - 1) / alignment * alignment;
}

// Data must follow one another from the header's end, each at the next multiple of the alignment,
// to the end of the file, which may be padded like a tensor's. Makes offsets those in the file.
Result<void> place(Cursor& cursor, std::vector<GgufTensor>& tensors, uint64_t alignment,
                   uint64_t file_bytes) {
  std::stable_sort(tensors.begin(), tensors.end(),
                   [](const auto& a, const auto& b) { return a.offset < b.offset; });
  const uint64_t begin = align(cursor.position(), alignment);
  uint64_t end = begin;
  std::string before = "the header";
  for (GgufTensor& tensor : tensors) {
    cursor.begin("tensor " + tensor.name);
    const uint64_t expected = align(end, alignment);
    if (tensor.offset != expected - begin) {
      return cursor.refuse("it begins at byte {} of the data, {} {}, after which byte {} is next",
                           tensor.offset,
                           tensor.offset < expected - begin ? "inside" : "behind a hole after",
                           before, expected - begin);
    }
    if (expected > file_bytes || tensor.bytes > file_bytes - expected) {
      return cursor.refuse(
          "its {} bytes from byte {} on do not fit the file of {}: it is truncated; fetch it again",
          tensor.bytes, expected, file_bytes);
    }
    tensor.offset = expected;
    end = expected + tensor.bytes;
    before = tensor.name;
  }
  cursor.begin("data");
  if (file_bytes > std::max(end, align(end, alignment))) {
    return cursor.refuse("{} bytes trail the last tensor, {}", file_bytes - end, before);
  }
  return {};
}

Result<void> read_version(Cursor& cursor, std::string_view where) {
  char magic[4];
  TRY(cursor.take(std::as_writable_bytes(std::span(magic))));
  if (std::string_view(magic, sizeof(magic)) != "GGUF")
    return cursor.refuse("it does not begin with GGUF; is it a GGUF file?");
  TRY_ASSIGN(const uint32_t version, cursor.number<uint32_t>());
  if (version == 2 || version == 3) return {};
  const bool big_endian = (version & 0xffff) == 0;
  return fail(ErrorCode::unsupported, "{}: expected version 2 or 3, found {}{}", where,
              big_endian ? __builtin_bswap32(version) : version,
              big_endian ? " of a big-endian file; convert it to little-endian" : "");
}

Result<Gguf> read_header(Cursor cursor, std::string_view where, uint64_t file_bytes) {
  TRY(read_version(cursor, where));
  TRY_ASSIGN(const uint64_t tensors, cursor.count("tensors", least_tensor_bytes));
  TRY_ASSIGN(const uint64_t keys, cursor.count("metadata keys", least_key_bytes));
  Gguf gguf;
  TRY_ASSIGN(gguf.metadata, read_metadata(cursor, keys));
  TRY_ASSIGN(gguf.tensors, read_tensors(cursor, tensors));
  cursor.begin("metadata");
  TRY_ASSIGN(const uint64_t alignment, read_alignment(cursor, gguf.metadata));
  TRY(place(cursor, gguf.tensors, alignment, file_bytes));
  return gguf;
}

}  // namespace

Result<Gguf> read_gguf(const File& file) {
  const auto read = [&](uint64_t offset, std::span<std::byte> bytes) {
    return file.read(offset, bytes);
  };
  return read_header(Cursor(file.path(), file.size(), read), file.path(), file.size());
}

Result<Gguf> read_gguf(std::span<const std::byte> bytes, std::string_view where) {
  const auto read = [&](uint64_t offset, std::span<std::byte> part) -> Result<void> {
    std::memcpy(part.data(), &bytes[offset], part.size());
    return {};
  };
  return read_header(Cursor(std::string(where), bytes.size(), read), where, bytes.size());
}

}  // namespace tandem::exporter
