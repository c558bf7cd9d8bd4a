#include "exporter/bands.h"

#include <algorithm>
#include <mutex>
#include <optional>

#include "base/error.h"
#include "base/parallel.h"
#include "exporter/ggml_blocks.h"

namespace tandem::exporter {
namespace {

constexpr uint64_t band_bytes = 64 << 20;  // of fp32 weights
constexpr uint64_t read_bytes = 1 << 20;   // of a source, in one read

// Where a row of the joined tensor lies.
struct SourceRow {
  const CheckpointTensor* source = nullptr;
  uint64_t row = 0;
  uint64_t rows_after = 0;  // of the same source that follow it in the joined tensor
};

SourceRow locate(const BoundTensor& tensor, uint64_t row) {
  if (tensor.row.join == spec::Join::interleave) {
    const uint64_t count = tensor.sources.size();
    return {&tensor.sources[row % count], row / count, 0};
  }
  size_t source = 0;
  while (row >= tensor.row.sources[source].rows) row -= tensor.row.sources[source++].rows;
  return {&tensor.sources[source], row, tensor.row.sources[source].rows - 1 - row};
}

tl::unexpected<Error> refuse_weight(const SourceRow& row, spec::WeightType type) {
  return fail(ErrorCode::malformed_checkpoint,
              "tensor {}: row {} holds a value that is NaN, infinite or out of range for {}",
              row.source->name, row.row, name(type));
}

// Converts rows in the order of the joined tensor, reading neighbours together.
class RowConverter {
 public:
  RowConverter(const BoundTensor& tensor, spec::WeightType type)
      : tensor_(tensor), type_(type), row_(tensor.row.columns) {}

  Result<RowReport> convert(uint64_t begin, uint64_t end, std::byte* values, uint64_t value_stride,
                            std::byte* scales, uint64_t scale_stride) {
    RowReport total;
    for (uint64_t r = begin; r < end;) {
      const SourceRow first = locate(tensor_, r);
      const uint64_t stride = row_bytes(first.source->dtype, row_.size());
      const uint64_t count =
          std::min({first.rows_after + 1, end - r, std::max<uint64_t>(1, read_bytes / stride)});
      raw_.resize(count * stride);
      TRY(tensor_.checkpoint->read(*first.source, first.row * stride, raw_));
      for (uint64_t i = 0; i < count; ++i, ++r) {
        const uint64_t at = r - begin;
        const RowReport report = convert_source_row(
            first.source->dtype, std::span(raw_).subspan(i * stride, stride),
            {values + at * value_stride, value_stride}, {scales + at * scale_stride, scale_stride});
        if (!report.finite) return refuse_weight({first.source, first.row + i, 0}, type_);
        total += report;
      }
    }
    return total;
  }

 private:
  RowReport convert_source_row(std::string_view dtype, std::span<const std::byte> raw,
                               std::span<std::byte> values, std::span<std::byte> scales) {
    if (is_kept(dtype, type_)) return keep_row(type_, raw, values, scales);
    widen(dtype, raw.data(), row_);
    if (tensor_.row.offset != 0) {
      for (float& value : row_) value += tensor_.row.offset;
    }
    return convert_row(type_, row_, values, scales);
  }

  const BoundTensor& tensor_;
  spec::WeightType type_;
  std::vector<float> row_;
  std::vector<std::byte> raw_;
};

// Outcome of ranges that run on several threads: the error is that of the earliest range.
struct Outcome {
  std::mutex mutex;
  RowReport report;
  std::optional<std::pair<uint64_t, Error>> error;

  void add(uint64_t begin, Result<RowReport> result) {
    const std::lock_guard lock(mutex);
    if (result) {
      report += *result;
    } else if (!error || begin < error->first) {
      error = {begin, std::move(result).error()};
    }
  }
};

}  // namespace

Result<void> for_each_band(const BoundTensor& tensor, spec::WeightType type, unsigned threads,
                           const std::function<Result<bool>(const Band&)>& use) {
  const std::vector<spec::PlaneLayout> planes = spec::planes(type, tensor.row.columns);
  const uint64_t value_stride = planes[0].bytes_per_row;
  const uint64_t scale_stride = planes.size() > 1 ? planes[1].bytes_per_row : 0;
  const uint64_t rows = tensor.row.rows;
  const uint64_t band_rows =
      std::clamp<uint64_t>(band_bytes / (tensor.row.columns * sizeof(float)), 1, rows);
  Band band;
  for (uint64_t first = 0; first < rows; first += band_rows) {
    const uint64_t count = std::min(band_rows, rows - first);
    band.values.resize(count * value_stride);
    band.scales.resize(count * scale_stride);
    band.source_bytes = tensor.source_bytes() * count / rows;
    Outcome outcome;
    parallel_for(
        count, 1,
        [&](uint64_t begin, uint64_t end) {
          RowConverter converter(tensor, type);
          outcome.add(begin,
                      converter.convert(first + begin, first + end,
                                        band.values.data() + begin * value_stride, value_stride,
                                        band.scales.data() + begin * scale_stride, scale_stride));
        },
        threads);
    if (outcome.error) return tl::unexpected(std::move(outcome.error->second));
    band.report = outcome.report;
    TRY_ASSIGN(const bool go_on, use(band));
    if (!go_on) break;
  }
  return {};
}

}  // namespace tandem::exporter
