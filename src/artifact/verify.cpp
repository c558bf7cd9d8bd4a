#include "artifact/verify.h"

#include <set>

#include "base/error.h"

namespace tandem::artifact {
namespace {

class NoSink : public WeightSink {
 public:
  explicit NoSink(const CancelFlag* cancel) : cancel_(cancel) {}
  Result<void> write(std::string_view, uint64_t, std::span<const std::byte>) override {
    return check_cancel(cancel_);
  }

 private:
  const CancelFlag* cancel_;
};

// The number of files, which are those that the manifest gives the folder.
Result<uint64_t> check_folder(const std::filesystem::path& folder, const Manifest& manifest) {
  std::set<std::string> own = {std::string(receipt_file)};
  for (const BoundFile& file : bound_files(manifest)) own.insert(file.file);
  for (const ReceiptShard& shard : bound_shards(manifest)) own.insert(shard.file);
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (!own.contains(entry->path().filename().string())) {
      return fail(ErrorCode::malformed_artifact, "{}: not a file of the artifact; remove it",
                  entry->path().string());
    }
  }
  if (error)
    return fail(ErrorCode::io, "{}: cannot list the folder: {}", folder.string(), error.message());
  return own.size();
}

}  // namespace

Result<Verification> verify(const std::filesystem::path& folder, const Progress& progress,
                            const std::filesystem::path& attached, unsigned threads,
                            const CancelFlag* cancel) {
  TRY_ASSIGN(Artifact artifact, Artifact::open(folder, std::nullopt, attached));
  const Manifest& manifest = artifact.manifest();
  TRY_ASSIGN(uint64_t files,
             check_folder(folder, manifest.attached_to ? plain_part(manifest) : manifest));
  if (manifest.attached_to) {
    TRY_ASSIGN(const uint64_t more, check_folder(attached, manifest));
    files += more;
  }
  NoSink sink(cancel);
  TRY(load(artifact, sink, progress, threads));
  return Verification{std::move(artifact), files};
}

}  // namespace tandem::artifact
