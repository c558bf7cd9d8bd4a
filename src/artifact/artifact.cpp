#include "artifact/artifact.h"

#include <algorithm>
#include <optional>
#include <thread>
#include <vector>

#include "artifact/attach.h"
#include "artifact/finite.h"
#include "artifact/ordering_watch.h"
#include "base/error.h"
#include "base/files.h"
#include "base/parallel.h"

namespace tandem::artifact {
namespace {

constexpr uint64_t max_metadata_bytes = 256 << 20;

// The path of a file of the artifact, for opening.
Result<File> open_file(const std::filesystem::path& folder, const std::string& name) {
  TRY_ASSIGN(const std::filesystem::path path, inside(folder, name));
  return File::open(path);
}

Result<std::string> read_text(const std::filesystem::path& folder, std::string_view name) {
  TRY_ASSIGN(const std::filesystem::path path, inside(folder, name));
  return read_file(path, max_metadata_bytes);
}

Result<std::string> read_bound(const std::filesystem::path& folder, const BoundFile& expected) {
  TRY_ASSIGN(std::string bytes, read_text(folder, expected.file));
  TRY(check_bytes(expected, bytes));
  return bytes;
}

Result<std::optional<std::string>> read_bound(const std::filesystem::path& folder,
                                              const std::optional<BoundFile>& expected) {
  if (!expected) return std::nullopt;
  TRY_ASSIGN(std::string bytes, read_bound(folder, *expected));
  return bytes;
}

// The two JSON files of a folder, which agree with one another.
struct Metadata {
  Receipt receipt;
  Manifest manifest;
  Digest digest;  // of the manifest
};

Result<Metadata> read_metadata(const std::filesystem::path& folder) {
  Metadata metadata;
  TRY_ASSIGN(const std::string receipt, read_text(folder, receipt_file));
  TRY_ASSIGN(metadata.receipt, read_receipt(receipt));
  TRY_ASSIGN(const std::string manifest, read_text(folder, manifest_file));
  TRY_ASSIGN(metadata.manifest, read_manifest(manifest));
  metadata.digest = sha256(manifest);
  TRY(check_receipt(metadata.receipt, metadata.manifest));
  return metadata;
}

// A safetensors header beside the one that follows from the manifest, which is as long.
Result<void> check_header(const std::string& path, std::string_view expected,
                          std::string_view found) {
  const size_t at = static_cast<size_t>(
      std::mismatch(expected.begin(), expected.end(), found.begin()).first - expected.begin());
  if (at == expected.size()) return {};
  constexpr size_t shown = 32;
  return fail(ErrorCode::malformed_artifact,
              "{}: header, byte {}: expected \"{}\", by {}, found \"{}\"", path, at,
              expected.substr(at, shown), manifest_file, found.substr(at, shown));
}

Result<void> read_piece(const File& file, const Piece& piece, std::vector<std::byte>& bytes) {
  bytes.resize(piece.bytes);
  TRY(file.read(piece.offset, bytes));
  const Digest found = sha256(bytes);
  if (found != piece.sha256) {
    return fail(ErrorCode::hash_mismatch,
                "{}: piece {}: expected sha256 {}, found {}; fetch or export it again", file.path(),
                piece.index, piece.sha256.hex(), found.hex());
  }
  return check_finite(piece, bytes, file.path());
}

Result<void> write_segments(const Piece& piece, std::span<const std::byte> bytes,
                            WeightSink& sink) {
  for (const Segment& segment : piece.segments) {
    TRY(sink.write(segment.plane, segment.plane_offset,
                   bytes.subspan(segment.piece_offset, segment.bytes)));
  }
  return {};
}

}  // namespace

Result<Artifact> Artifact::open(const std::filesystem::path& folder, std::optional<View> view,
                                const std::filesystem::path& attached) {
  TRY_ASSIGN(Metadata metadata, read_metadata(folder));
  if (metadata.manifest.attached_to) {
    return fail(ErrorCode::invalid_argument,
                "{}: an assistant without its target, which is the artifact {}; open that one, "
                "with this as its assistant (--assistant)",
                folder.string(), metadata.manifest.attached_to->hex());
  }
  Artifact artifact;
  artifact.folder_ = folder;
  artifact.manifest_ = std::move(metadata.manifest);
  artifact.receipt_ = std::move(metadata.receipt);
  artifact.digest_ = metadata.digest;
  if (!attached.empty()) TRY(artifact.attach(attached));
  const Manifest& manifest = artifact.manifest_;
  const View all = manifest.mtp ? View::mtp : View::plain;
  TRY_ASSIGN(artifact.plan_, make_load_plan(manifest, view.value_or(all)));
  TRY_ASSIGN(artifact.tokenizer_, read_bound(folder, manifest.tokenizer));
  TRY_ASSIGN(artifact.chat_template_, read_bound(folder, manifest.chat_template));
  TRY_ASSIGN(artifact.generation_config_, read_bound(folder, manifest.generation_config));
  TRY(artifact.check_shards());
  return artifact;
}

// The attached manifest speaks of the target as this one does, so it takes its place.
Result<void> Artifact::attach(const std::filesystem::path& folder) {
  TRY_ASSIGN(Metadata metadata, read_metadata(folder));
  TRY(check_attached({metadata.manifest, folder.string(), metadata.digest},
                     {manifest_, folder_.string(), digest_}));
  attached_ = folder;
  manifest_ = std::move(metadata.manifest);
  receipt_.assistant = std::move(metadata.receipt.assistant);
  digest_ = metadata.digest;
  return {};
}

const std::filesystem::path& Artifact::folder_of(const Shard& shard) const {
  return manifest_.attached_to && shard.role == assistant_role ? attached_ : folder_;
}

Result<void> Artifact::check_shards() const {
  for (size_t i = 0; i < manifest_.shards.size(); ++i) {
    const Shard& shard = manifest_.shards[i];
    TRY_ASSIGN(const File file, open_file(folder_of(shard), shard.file));
    if (file.size() != shard.bytes) {
      return fail(ErrorCode::malformed_artifact, "{}: expected {} bytes, found {}", file.path(),
                  shard.bytes, file.size());
    }
    std::string header(plan_.shard_headers[i].size(), '\0');
    TRY(file.read(0, std::as_writable_bytes(std::span(header))));
    TRY(check_header(file.path(), plan_.shard_headers[i], header));
  }
  return {};
}

Result<void> load(const Artifact& artifact, WeightSink& sink, const Progress& progress,
                  unsigned threads) {
  std::vector<File> files;
  for (const Shard& shard : artifact.manifest().shards) {
    TRY_ASSIGN(File file, open_file(artifact.folder_of(shard), shard.file));
    files.push_back(std::move(file));
  }
  if (threads == 0) threads = std::max(1u, std::thread::hardware_concurrency());
  const std::vector<Piece>& pieces = artifact.plan().pieces;
  // A batch of pieces is read and hashed in parallel, then written in order.
  std::vector<std::vector<std::byte>> bytes(std::min<size_t>(2 * threads, pieces.size()));
  std::vector<Result<void>> results(bytes.size());
  OrderingWatch ordering(artifact);
  uint64_t done = 0;
  for (size_t first = 0; first < pieces.size(); first += bytes.size()) {
    const size_t count = std::min(bytes.size(), pieces.size() - first);
    parallel_for(
        count, 1,
        [&](uint64_t begin, uint64_t end) {
          for (uint64_t i = begin; i < end; ++i) {
            results[i] = read_piece(files[pieces[first + i].shard], pieces[first + i], bytes[i]);
          }
        },
        threads);
    for (size_t i = 0; i < count; ++i) {
      TRY(results[i]);
      TRY(ordering.see(pieces[first + i], bytes[i]));
      TRY(write_segments(pieces[first + i], bytes[i], sink));
      done += pieces[first + i].bytes;
      if (progress) progress(done, artifact.plan().bytes);
    }
  }
  return ordering.finish();
}

}  // namespace tandem::artifact
