// Staging beside the destination, and renames that replace nothing.
#include "base/publication.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

#include "base/files.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

tl::unexpected<Error> io_failure(const fs::path& path, std::string_view action) {
  return fail(ErrorCode::io, "{}: cannot {}: {}", path.string(), action,
              std::generic_category().message(errno));
}

tl::unexpected<Error> exists_already(const fs::path& path) {
  return fail(ErrorCode::already_exists,
              "{}: the output exists already and is never replaced; remove it or choose another "
              "name",
              path.string());
}

// The destination without trailing separators, once it is known that it can be made.
Result<fs::path> checked_destination(const fs::path& destination) {
  const fs::path normal = destination.lexically_normal();
  const fs::path path = normal.has_filename() ? normal : normal.parent_path();
  if (!path.has_filename() || path.filename() == "." || path.filename() == "..") {
    return fail(ErrorCode::invalid_argument, "\"{}\": expected the name of a new output",
                destination.string());
  }
  struct stat status;
  if (lstat(path.c_str(), &status) == 0) return exists_already(path);
  if (errno != ENOENT && errno != ENOTDIR) return io_failure(path, "look for the output");
  const fs::path parent = path.has_parent_path() ? path.parent_path() : fs::path(".");
  if (stat(parent.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) {
    return fail(ErrorCode::not_found, "{}: the folder {} for the output does not exist; make it",
                path.string(), parent.string());
  }
  return parent / path.filename();
}

// A new hidden folder beside the destination.
Result<fs::path> make_staging_folder(const fs::path& destination) {
  static std::atomic<uint64_t> counter{0};
  for (int attempt = 0; attempt < 100; ++attempt) {
    const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
    const fs::path staged = destination.parent_path() /
                            fmt::format(".{}.partial-{}-{:x}-{}", destination.filename().string(),
                                        getpid(), now, counter.fetch_add(1));
    if (mkdir(staged.c_str(), 0777) == 0) return staged;
    if (errno != EEXIST) return io_failure(staged, "make a folder for the output");
  }
  return fail(ErrorCode::io, "{}: no name is free for a folder beside it", destination.string());
}

Result<void> sync_folder(const fs::path& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return io_failure(folder, "open the folder");
  const bool synced = fsync(descriptor) == 0;
  const int error = errno;
  ::close(descriptor);
  errno = error;
  if (!synced) return io_failure(folder, "bring the folder to the disk");
  return {};
}

Result<void> rename_without_replacing(const fs::path& from, const fs::path& to, detail::Kind kind) {
#ifdef RENAME_NOREPLACE
  if (renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return {};
  if (errno == EEXIST) return exists_already(to);
  if (errno != EINVAL && errno != ENOSYS) {
    return io_failure(to, "give the finished output its name");
  }
#endif
  return detail::rename_by_reserving(from, to, kind);
}

}  // namespace

Result<void> detail::rename_by_reserving(const fs::path& from, const fs::path& to, Kind kind) {
  if (kind == Kind::file) {
    if (link(from.c_str(), to.c_str()) == 0) return {};  // the staged name goes with its folder
  } else if (mkdir(to.c_str(), 0777) == 0) {
    if (rename(from.c_str(), to.c_str()) == 0) return {};
    const int error = errno;
    rmdir(to.c_str());
    errno = error;
  }
  if (errno == EEXIST || errno == ENOTEMPTY) return exists_already(to);
  return io_failure(to, "give the finished output its name");
}

// A staging folder and its files; removes what it still has when it goes.
struct OutputFile::Staged {
  fs::path folder;
  fs::path destination;
  std::vector<std::string> files;
  std::set<std::string> unfinished;

  ~Staged() {
    if (folder.empty()) return;
    for (const std::string& name : files) unlink((folder / name).c_str());
    rmdir(folder.c_str());
  }
};

OutputFile::OutputFile(std::shared_ptr<Staged> staged, std::string name, std::string path,
                       int descriptor)
    : staged_(std::move(staged)),
      name_(std::move(name)),
      path_(std::move(path)),
      descriptor_(descriptor) {}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : staged_(std::move(other.staged_)),
      name_(std::move(other.name_)),
      path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      bytes_written_(other.bytes_written_) {}

OutputFile& OutputFile::operator=(OutputFile&& other) noexcept {
  std::swap(staged_, other.staged_);
  std::swap(name_, other.name_);
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(bytes_written_, other.bytes_written_);
  return *this;
}

OutputFile::~OutputFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Result<void> OutputFile::write(std::span<const std::byte> bytes) {
  if (descriptor_ < 0) return fail(ErrorCode::internal, "{}: written after its end", path_);
  while (!bytes.empty()) {
    const ssize_t count = ::write(descriptor_, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return io_failure(path_, "write");
    bytes = bytes.subspan(static_cast<size_t>(count));
    bytes_written_ += static_cast<uint64_t>(count);
  }
  return {};
}

Result<void> OutputFile::close() {
  if (descriptor_ < 0) return fail(ErrorCode::internal, "{}: closed twice", path_);
  if (fsync(descriptor_) != 0) return io_failure(path_, "bring the file to the disk");
  if (::close(std::exchange(descriptor_, -1)) != 0) return io_failure(path_, "close");
  staged_->unfinished.erase(name_);
  return {};
}

Publication::Publication(std::shared_ptr<OutputFile::Staged> staged) : staged_(std::move(staged)) {}
Publication::Publication(Publication&&) noexcept = default;
Publication& Publication::operator=(Publication&&) noexcept = default;
Publication::~Publication() = default;

Result<Publication> Publication::begin(const fs::path& destination) {
  auto staged = std::make_shared<OutputFile::Staged>();
  TRY_ASSIGN(staged->destination, checked_destination(destination));
  TRY_ASSIGN(staged->folder, make_staging_folder(staged->destination));
  return Publication(std::move(staged));
}

Result<void> Publication::check_open() const {
  if (!staged_->folder.empty()) return {};
  return fail(ErrorCode::internal, "{}: is published already", staged_->destination.string());
}

Result<OutputFile> Publication::create(std::string_view name) {
  TRY(check_open());
  TRY_ASSIGN(const fs::path path, inside(staged_->folder, name));
  const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  const int descriptor = ::open(path.c_str(), flags, 0666);
  if (descriptor < 0) return io_failure(path, "make the file");
  staged_->files.emplace_back(name);
  staged_->unfinished.emplace(name);
  return OutputFile(staged_, std::string(name), path.string(), descriptor);
}

Result<void> Publication::commit() {
  TRY(check_open());
  OutputFile::Staged& staged = *staged_;
  if (!staged.unfinished.empty()) {
    return fail(ErrorCode::internal, "{}: {} was not written to its end", staged.folder.string(),
                *staged.unfinished.begin());
  }
  TRY(sync_folder(staged.folder));
  TRY(rename_without_replacing(staged.folder, staged.destination, detail::Kind::folder));
  const fs::path folder = std::exchange(staged.folder, fs::path());
  const Result<void> synced = sync_folder(staged.destination.parent_path());
  if (!synced && rename(staged.destination.c_str(), folder.c_str()) == 0) staged.folder = folder;
  return synced;
}

Result<FilePublication> FilePublication::begin(const fs::path& destination) {
  TRY_ASSIGN(Publication folder, Publication::begin(destination));
  TRY_ASSIGN(OutputFile file, folder.create("output"));
  TRY_ASSIGN(fs::path checked, checked_destination(destination));
  return FilePublication(std::move(folder), std::move(file), std::move(checked));
}

Result<void> FilePublication::commit() {
  TRY(file_.close());
  TRY(rename_without_replacing(file_.path(), destination_, detail::Kind::file));
  const Result<void> synced = sync_folder(destination_.parent_path());
  if (!synced) unlink(destination_.c_str());
  return synced;
}

}  // namespace tandem
