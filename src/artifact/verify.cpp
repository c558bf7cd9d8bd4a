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

Result<uint64_t> check_folder(const Artifact& artifact) {
  std::set<std::string> own = {std::string(receipt_file)};
  for (const BoundFile& file : artifact.receipt().files) own.insert(file.file);
  for (const ReceiptShard& shard : artifact.receipt().shards) own.insert(shard.file);
  std::error_code error;
  for (std::filesystem::directory_iterator entry(artifact.folder(), error), end;
       !error && entry != end; entry.increment(error)) {
    if (!own.contains(entry->path().filename().string())) {
      return fail(ErrorCode::malformed_artifact, "{}: not a file of the artifact; remove it",
                  entry->path().string());
    }
  }
  if (error)
    return fail(ErrorCode::io, "{}: cannot list the folder: {}", artifact.folder().string(),
                error.message());
  return own.size();
}

}  // namespace

Result<Verification> verify(const std::filesystem::path& folder, const Progress& progress,
                            unsigned threads, const CancelFlag* cancel) {
  TRY_ASSIGN(Artifact artifact, Artifact::open(folder, std::nullopt));
  TRY_ASSIGN(const uint64_t files, check_folder(artifact));
  NoSink sink(cancel);
  TRY(load(artifact, sink, progress, threads));
  return Verification{std::move(artifact), files};
}

}  // namespace tandem::artifact
