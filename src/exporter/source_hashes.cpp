#include "exporter/source_hashes.h"

#include <algorithm>

#include "base/error.h"
#include "base/parallel.h"

namespace tandem::exporter {
namespace {

constexpr uint64_t read_bytes = 1 << 20;

Result<Digest> hash_file(const File& file, const CancelFlag& unwanted, const CancelFlag* cancel) {
  Sha256 hash;
  std::vector<std::byte> buffer(std::min(read_bytes, file.size()));
  for (uint64_t offset = 0; offset < file.size(); offset += buffer.size()) {
    TRY(check_cancel(&unwanted));
    TRY(check_cancel(cancel));
    buffer.resize(std::min<uint64_t>(buffer.size(), file.size() - offset));
    TRY(file.read(offset, buffer));
    hash.update(buffer);
  }
  return hash.finish();
}

}  // namespace

SourceHashes::SourceHashes(const std::vector<File>& files, const WeightOptions& options) {
  const auto hash_all = [this, &files, threads = options.threads,
                         cancel = options.cancel]() -> Result<std::vector<Digest>> {
    std::vector<Result<Digest>> hashed(files.size());
    const auto hash_some = [&](uint64_t begin, uint64_t end) {
      for (uint64_t i = begin; i < end; ++i) hashed[i] = hash_file(files[i], unwanted_, cancel);
    };
    parallel_for(files.size(), 1, hash_some, threads);
    std::vector<Digest> digests;
    for (Result<Digest>& result : hashed) {
      TRY_ASSIGN(const Digest digest, std::move(result));
      digests.push_back(digest);
    }
    return digests;
  };
  // Where the system gives no thread, the library falls back to the second way.
  const auto both = std::launch::async | std::launch::deferred;
  digests_ = std::async(options.threads == 1 ? std::launch::deferred : both, hash_all);
}

SourceHashes::~SourceHashes() { unwanted_ = true; }

}  // namespace tandem::exporter
