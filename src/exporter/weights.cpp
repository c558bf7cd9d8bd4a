#include "exporter/weights.h"

#include <algorithm>

#include "artifact/shard_layout.h"
#include "artifact/token_ordering.h"
#include "base/error.h"
#include "exporter/bands.h"

namespace tandem::exporter {
namespace {

using artifact::Manifest;
using artifact::SafetensorsEntry;
using artifact::TensorEntry;

std::vector<SafetensorsEntry> plane_entries(const TensorEntry& tensor) {
  std::vector<SafetensorsEntry> result;
  for (const spec::PlaneLayout& plane : spec::planes(tensor.type, tensor.columns)) {
    result.push_back(artifact::plane_entry(tensor.name, plane, tensor.rows));
  }
  return result;
}

// Makes a shard of the manifest's tensors from `first` on and gives their planes offsets in it.
void close_shard(Manifest& manifest, size_t first, std::vector<std::string>& headers) {
  std::vector<SafetensorsEntry> planes;
  for (size_t i = first; i < manifest.tensors.size(); ++i) {
    const std::vector<SafetensorsEntry> own = plane_entries(manifest.tensors[i]);
    planes.insert(planes.end(), own.begin(), own.end());
  }
  artifact::ShardLayout layout = artifact::lay_out_shard(planes);
  auto entry = layout.entries.begin();
  for (size_t i = first; i < manifest.tensors.size(); ++i) {
    for (artifact::Plane& plane : manifest.tensors[i].planes) {
      while (artifact::is_padding(*entry)) ++entry;
      plane.shard = static_cast<uint32_t>(manifest.shards.size());
      plane.offset = (entry++)->offset;
    }
  }
  const std::string_view role = spec::is_assistants(manifest.tensors[first].name)
                                    ? artifact::assistant_role
                                    : artifact::target_role;
  manifest.shards.push_back(
      {artifact::shard_file(manifest.shards.size()), std::string(role), 0, {}});
  headers.push_back(std::move(layout.header));
}

// Fills tensors and, but for their sizes and hashes, shards. The headers of the shards.
std::vector<std::string> lay_out(Manifest& manifest, const std::vector<BoundTensor>& tensors,
                                 uint64_t shard_bytes) {
  std::vector<std::string> headers;
  size_t first = manifest.tensors.size();
  uint64_t filled = 0;
  for (const BoundTensor& bound : tensors) {
    const spec::Tensor& row = bound.row;
    TensorEntry tensor{row.name, manifest.recipe.of(row), row.rows, row.columns, {}};
    uint64_t bytes = 0;
    for (const spec::PlaneLayout& plane : spec::planes(tensor.type, tensor.columns)) {
      tensor.planes.push_back({std::string(plane.suffix), 0, 0});
      bytes += plane.bytes_per_row * row.rows;
    }
    const bool other_role = filled != 0 && spec::is_assistants(row.name) !=
                                               spec::is_assistants(manifest.tensors.back().name);
    if (other_role || (filled != 0 && filled + bytes > shard_bytes)) {
      close_shard(manifest, first, headers);
      first = manifest.tensors.size();
      filled = 0;
    }
    filled += bytes;
    manifest.tensors.push_back(std::move(tensor));
  }
  close_shard(manifest, first, headers);
  return headers;
}

class TensorWriter {
 public:
  TensorWriter(const WeightOptions& options, const artifact::Progress& progress,
               uint64_t total_bytes)
      : options_(options), progress_(progress), total_bytes_(total_bytes) {}

  Result<TensorReport> write(const BoundTensor& tensor, const TensorEntry& entry,
                             ShardWriter& shard) {
    const std::vector<SafetensorsEntry> planes = plane_entries(entry);
    const bool has_scales = planes.size() > 1;
    const bool keep_scales = has_scales && planes[1].bytes <= options_.scale_bytes;
    std::vector<std::byte> scales;
    if (keep_scales) scales.reserve(planes[1].bytes);
    RowReport report;
    uint64_t read_bytes = 0;
    const auto write_values = [&](const Band& band) -> Result<bool> {
      TRY(check_cancel(options_.cancel));
      TRY(shard.write(band.values));
      if (keep_scales) scales.insert(scales.end(), band.scales.begin(), band.scales.end());
      report += band.report;
      read_bytes += band.source_bytes;
      if (progress_) progress_(done_bytes_ + read_bytes, total_bytes_);
      return true;
    };
    const auto write_scales = [&](const Band& band) -> Result<bool> {
      TRY(check_cancel(options_.cancel));
      TRY(shard.write(band.scales));
      return true;
    };
    TRY(shard.pad_to(entry.planes[0].offset));
    TRY(for_each_band(tensor, entry.type, options_.threads, write_values));
    if (has_scales) TRY(shard.pad_to(entry.planes[1].offset));
    if (keep_scales) TRY(shard.write(scales));
    if (has_scales && !keep_scales) {
      TRY(for_each_band(tensor, entry.type, options_.threads, write_scales));
    }
    done_bytes_ += tensor.source_bytes();
    return TensorReport{entry.name, entry.type, report.exact, report.raised};
  }

 private:
  const WeightOptions& options_;
  const artifact::Progress& progress_;
  uint64_t total_bytes_;
  uint64_t done_bytes_ = 0;  // of the tensors before
};

Result<bool> lies_on_q4_0_grid(const BoundTensor& tensor, const WeightOptions& options) {
  bool exact = true;
  const auto check = [&](const Band& band) -> Result<bool> {
    TRY(check_cancel(options.cancel));
    return exact = exact && band.report.exact;
  };
  TRY(for_each_band(tensor, spec::WeightType::q4_0, options.threads, check));
  return exact;
}

// The certificate of the token ordering, if there is one among the tensors.
Result<std::optional<Digest>> certify_token_ordering(const std::vector<BoundTensor>& tensors) {
  for (const BoundTensor& tensor : tensors) {
    if (tensor.row.tensor_class != spec::TensorClass::ids) continue;
    artifact::TokenOrderingCheck check(tensor.row.columns);
    const auto add = [&](const Band& band) -> Result<bool> {
      TRY(check.add(band.values));
      return true;
    };
    TRY(for_each_band(tensor, spec::WeightType::u32, 1, add));
    TRY_ASSIGN(const Digest digest, check.finish());
    return digest;
  }
  return std::nullopt;
}

}  // namespace

Result<void> write_shards(const std::vector<BoundTensor>& tensors, const WeightOptions& options,
                          Publication& publication, Manifest& manifest, const WriteTensor& write) {
  const size_t first_tensor = manifest.tensors.size(), first_shard = manifest.shards.size();
  const std::vector<std::string> headers = lay_out(manifest, tensors, options.shard_bytes);
  size_t next = 0;
  for (size_t index = first_shard; index < manifest.shards.size(); ++index) {
    TRY_ASSIGN(ShardWriter shard,
               ShardWriter::create(publication, manifest.shards[index], options.threads));
    TRY(shard.write(std::as_bytes(std::span(headers[index - first_shard]))));
    for (; next < tensors.size(); ++next) {
      const TensorEntry& entry = manifest.tensors[first_tensor + next];
      if (entry.planes[0].shard != index) break;
      TRY(write(tensors[next], entry, shard));
    }
    TRY_ASSIGN(manifest.shards[index], shard.finish());
  }
  return {};
}

Result<std::vector<TensorReport>> write_weights(const std::vector<BoundTensor>& tensors,
                                                const WeightOptions& options,
                                                Publication& publication, Manifest& manifest,
                                                const artifact::Progress& progress) {
  const auto on_grid = [&](const BoundTensor& tensor) {
    return lies_on_q4_0_grid(tensor, options);
  };
  if (manifest.mtp) {
    TRY_ASSIGN(manifest.mtp->token_ordering, certify_token_ordering(tensors));
  }
  TRY_ASSIGN(const artifact::Recipe recipe, make_recipe(options.recipe, tensors, on_grid));
  manifest.recipe = manifest.attached_to ? extend(manifest.recipe, recipe, tensors) : recipe;
  uint64_t total_bytes = 0;
  for (const BoundTensor& tensor : tensors) total_bytes += tensor.source_bytes();
  TensorWriter writer(options, progress, total_bytes);
  std::vector<TensorReport> reports;
  const auto write = [&](const BoundTensor& tensor, const TensorEntry& entry,
                         ShardWriter& shard) -> Result<void> {
    TRY_ASSIGN(TensorReport report, writer.write(tensor, entry, shard));
    reports.push_back(std::move(report));
    return {};
  };
  TRY(write_shards(tensors, options, publication, manifest, write));
  return reports;
}

}  // namespace tandem::exporter
