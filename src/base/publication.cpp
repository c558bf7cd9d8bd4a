// Staging beside the destination, and renames that replace nothing.
#include "base/publication.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/sha256.h"

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

// A folder that is open, and locked for as long as it is.
class OpenFolder {
 public:
  OpenFolder() = default;
  explicit OpenFolder(const fs::path& path)
      : descriptor_(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) {}
  OpenFolder(OpenFolder&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  OpenFolder& operator=(OpenFolder&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~OpenFolder() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }

  int descriptor() const { return descriptor_; }
  bool lock() const { return flock(descriptor_, LOCK_EX | LOCK_NB) == 0; }
  void wait_for_lock() const {
    while (flock(descriptor_, LOCK_EX) != 0 && errno == EINTR) continue;
  }
  // Whether it still has this name.
  bool is_at(const fs::path& path) const {
    struct stat own, named;
    return fstat(descriptor_, &own) == 0 && lstat(path.c_str(), &named) == 0 &&
           own.st_dev == named.st_dev && own.st_ino == named.st_ino;
  }

 private:
  int descriptor_ = -1;
};

// The names in a folder; none if it cannot be listed.
std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    names.push_back(entry->path().filename().string());
  }
  return names;
}

bool same_but_for_case(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return a != b && std::equal(a.begin(), a.end(), b.begin(), b.end(),
                              [&](char x, char y) { return lower(x) == lower(y); });
}

// Refuses a name that means the same file as another where case does not count.
Result<void> check_case(const fs::path& folder, std::string_view name,
                        const std::vector<std::string>& others) {
  const auto other = std::find_if(others.begin(), others.end(), [&](const std::string& taken) {
    return same_but_for_case(taken, name);
  });
  if (other == others.end()) return {};
  return fail(ErrorCode::already_exists,
              "{}: \"{}\" is there and differs from \"{}\" only in case, which not every file "
              "system keeps apart; choose another name",
              folder.string(), *other, name);
}

// What a folder holds that is an artifact, which takes no other file.
constexpr std::string_view artifact_files[] = {"manifest.json", "receipt.json"};

// What was published stays as it is: refuses an output inside an artifact.
Result<void> check_outside_artifacts(const fs::path& destination) {
  for (fs::path folder = destination.parent_path();; folder = folder.parent_path()) {
    const bool is_artifact =
        std::all_of(std::begin(artifact_files), std::end(artifact_files),
                    [&](std::string_view file) { return is_there(folder / file); });
    if (is_artifact) {
      return fail(ErrorCode::invalid_argument,
                  "{}: expected an output outside {}, which is an artifact; choose another place",
                  destination.string(), folder.string());
    }
    if (folder == folder.root_path()) return {};
  }
}

// The destination without trailing separators, in a parent that exists. Its way there is the
// system's: what follows a symbolic link is resolved where the link leads.
Result<fs::path> in_its_parent(const fs::path& destination) {
  const fs::path path = destination.has_filename() ? destination : destination.parent_path();
  if (!path.has_filename() || path.filename() == "." || path.filename() == "..") {
    return fail(ErrorCode::invalid_argument, "\"{}\": expected the name of a new output",
                destination.string());
  }
  const fs::path parent = path.has_parent_path() ? path.parent_path() : fs::path(".");
  std::error_code error;
  const fs::path place = fs::canonical(parent, error);
  if (error || !fs::is_directory(place, error)) {
    return fail(ErrorCode::not_found, "{}: the folder {} for the output does not exist; make it",
                path.string(), parent.string());
  }
  return place / path.filename();
}

Result<void> check_free(const fs::path& destination) {
  struct stat status;
  if (lstat(destination.c_str(), &status) == 0) return exists_already(destination);
  if (errno != ENOENT) return io_failure(destination, "look for the output");
  return check_case(destination.parent_path(), destination.filename().string(),
                    names_in(destination.parent_path()));
}

std::string staging_prefix(const fs::path& destination) {
  return fmt::format(".{}.partial-", destination.filename().string());
}

// A staging folder's name ends with the hash of what stands before, so that no other folder,
// whatever it is called, is taken for one.
std::string seal(std::string_view name) { return sha256(name).hex().substr(0, 16); }

bool is_sealed(std::string_view name) {
  const size_t end = name.rfind('-');
  return end != name.npos && name.substr(end + 1) == seal(name.substr(0, end));
}

// A new hidden folder beside the destination, locked where the file system has locks.
Result<std::pair<fs::path, OpenFolder>> make_staging_folder(const fs::path& destination) {
  static std::atomic<uint64_t> counter{0};
  for (int attempt = 0; attempt < 100; ++attempt) {
    const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
    const std::string name =
        fmt::format("{}{}-{:x}-{}", staging_prefix(destination), getpid(), now, counter++);
    const fs::path path = destination.parent_path() / fmt::format("{}-{}", name, seal(name));
    if (mkdir(path.c_str(), 0777) != 0) {
      if (errno == EEXIST) continue;
      return io_failure(path, "make a folder for the output");
    }
    OpenFolder folder(path);
    // Until it was locked, another process could take it for abandoned.
    if (folder.descriptor() < 0 || (!folder.lock() && errno == EWOULDBLOCK)) continue;
    if (folder.is_at(path)) return std::pair(path, std::move(folder));
  }
  return fail(ErrorCode::io, "{}: no name is free for a folder beside it", destination.string());
}

// Removes a staging folder of this user that nobody has locked, unless it holds what no publication
// puts there.
void remove_if_abandoned(const fs::path& path) {
  const OpenFolder folder(path);
  struct stat status;
  if (!folder.lock() || fstat(folder.descriptor(), &status) != 0 || status.st_uid != geteuid())
    return;
  const std::vector<std::string> files = names_in(path);
  for (const std::string& file : files) {
    const bool known =
        fstatat(folder.descriptor(), file.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISREG(status.st_mode);
    if (!known) return;
  }
  for (const std::string& file : files) unlinkat(folder.descriptor(), file.c_str(), 0);
  rmdir(path.c_str());
}

// What killed publications of this destination have left.
void remove_abandoned(const fs::path& destination) {
  const std::string prefix = staging_prefix(destination);
  for (const std::string& name : names_in(destination.parent_path())) {
    if (name.starts_with(prefix) && is_sealed(name))
      remove_if_abandoned(destination.parent_path() / name);
  }
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

// Outputs of one folder get their names one after the other, so that of two that differ only in
// case, made at the same time, the first wins.
Result<void> rename_without_replacing(const fs::path& from, const fs::path& to, detail::Kind kind) {
  const OpenFolder parent(to.parent_path());
  parent.wait_for_lock();
  TRY(check_case(to.parent_path(), to.filename().string(), names_in(to.parent_path())));
#ifdef RENAME_NOREPLACE
  if (renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return {};
  if (errno == EEXIST) return exists_already(to);
  if (errno != EINVAL && errno != ENOSYS) {
    return io_failure(to, "give the finished output its name");
  }
#endif
  return detail::rename_after_a_look(from, to, kind);
}

}  // namespace

Result<void> detail::rename_after_a_look(const fs::path& from, const fs::path& to, Kind kind) {
  struct stat status;
  if (lstat(to.c_str(), &status) == 0) return exists_already(to);
  const int failed =
      kind == Kind::file ? link(from.c_str(), to.c_str()) : rename(from.c_str(), to.c_str());
  if (failed == 0) return {};
  if (errno == EEXIST || errno == ENOTEMPTY || errno == ENOTDIR) return exists_already(to);
  return io_failure(to, "give the finished output its name");
}

std::string_view name(PublicationStep step) {
  switch (step) {
    case PublicationStep::folder_made:
      return "folder made";
    case PublicationStep::file_made:
      return "file made";
    case PublicationStep::file_written:
      return "file written";
    case PublicationStep::file_synced:
      return "file synced";
    case PublicationStep::folder_synced:
      return "folder synced";
    case PublicationStep::checked:
      return "checked";
    case PublicationStep::renamed:
      return "renamed";
    case PublicationStep::parent_synced:
      return "parent synced";
  }
  return "";
}

// A staging folder and its files; removes what it still has when it goes.
struct OutputFile::Staged {
  fs::path destination;
  PublicationObserver observer;
  fs::path folder;  // none once it is published
  OpenFolder open;
  std::vector<std::string> files;
  std::set<std::string> unfinished;

  void done(PublicationStep step) const {
    if (observer) observer(step);
  }

  ~Staged() {
    if (folder.empty()) return;
    for (const std::string& name : files) unlinkat(open.descriptor(), name.c_str(), 0);
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
  staged_->done(PublicationStep::file_written);
  return {};
}

Result<void> OutputFile::close() {
  if (descriptor_ < 0) return fail(ErrorCode::internal, "{}: closed twice", path_);
  while (fsync(descriptor_) != 0) {
    if (errno != EINTR) return io_failure(path_, "bring the file to the disk");
  }
  // Whoever reads it next shall see what the disk has, not what memory still holds.
  posix_fadvise(descriptor_, 0, 0, POSIX_FADV_DONTNEED);
  if (::close(std::exchange(descriptor_, -1)) != 0) return io_failure(path_, "close");
  staged_->unfinished.erase(name_);
  staged_->done(PublicationStep::file_synced);
  return {};
}

Publication::Publication(std::shared_ptr<OutputFile::Staged> staged) : staged_(std::move(staged)) {}
Publication::Publication(Publication&&) noexcept = default;
Publication& Publication::operator=(Publication&&) noexcept = default;
Publication::~Publication() = default;

Result<Publication> Publication::begin(const fs::path& destination, PublicationObserver observer) {
  auto staged = std::make_shared<OutputFile::Staged>();
  TRY_ASSIGN(staged->destination, in_its_parent(destination));
  remove_abandoned(staged->destination);
  TRY(check_free(staged->destination));
  TRY(check_outside_artifacts(staged->destination));
  TRY_ASSIGN(auto made, make_staging_folder(staged->destination));
  staged->folder = std::move(made.first);
  staged->open = std::move(made.second);
  staged->observer = std::move(observer);
  staged->done(PublicationStep::folder_made);
  return Publication(std::move(staged));
}

const fs::path& Publication::destination() const { return staged_->destination; }

Result<void> Publication::check_open() const {
  if (!staged_->folder.empty()) return {};
  return fail(ErrorCode::internal, "{}: is published already", staged_->destination.string());
}

Result<OutputFile> Publication::create(std::string_view name) {
  TRY(check_open());
  OutputFile::Staged& staged = *staged_;
  TRY_ASSIGN(const fs::path path, inside(staged.folder, name));
  TRY(check_case(staged.folder, name, staged.files));
  const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  const int descriptor = openat(staged.open.descriptor(), path.filename().c_str(), flags, 0666);
  if (descriptor < 0) return io_failure(path, "make the file");
  staged.files.emplace_back(name);
  staged.unfinished.emplace(name);
  staged.done(PublicationStep::file_made);
  return OutputFile(staged_, std::string(name), path.string(), descriptor);
}

Result<void> Publication::commit(const std::function<Result<void>(const fs::path&)>& check) {
  TRY(check_open());
  OutputFile::Staged& staged = *staged_;
  if (!staged.unfinished.empty()) {
    return fail(ErrorCode::internal, "{}: {} was not written to its end", staged.folder.string(),
                *staged.unfinished.begin());
  }
  TRY(sync_folder(staged.folder));
  staged.done(PublicationStep::folder_synced);
  if (check) TRY(check(staged.folder));
  staged.done(PublicationStep::checked);
  if (!staged.open.is_at(staged.folder)) {
    return fail(ErrorCode::unsafe_path, "{}: is no longer the folder that was written; try again",
                staged.folder.string());
  }
  TRY(rename_without_replacing(staged.folder, staged.destination, detail::Kind::folder));
  staged.done(PublicationStep::renamed);
  const fs::path folder = std::exchange(staged.folder, fs::path());
  const Result<void> synced = sync_folder(staged.destination.parent_path());
  if (!synced && rename(staged.destination.c_str(), folder.c_str()) == 0) staged.folder = folder;
  if (synced) staged.done(PublicationStep::parent_synced);
  return synced;
}

Result<FilePublication> FilePublication::begin(const fs::path& destination) {
  if (!destination.has_filename()) {
    return fail(ErrorCode::invalid_argument, "\"{}\": expected the name of a new file",
                destination.string());
  }
  TRY_ASSIGN(Publication folder, Publication::begin(destination));
  TRY_ASSIGN(OutputFile file, folder.create("output"));
  return FilePublication(std::move(folder), std::move(file));
}

Result<void> FilePublication::commit() {
  TRY(file_.close());
  const fs::path& destination = folder_.destination();
  TRY(rename_without_replacing(file_.path(), destination, detail::Kind::file));
  const Result<void> synced = sync_folder(destination.parent_path());
  if (!synced) unlink(destination.c_str());
  return synced;
}

}  // namespace tandem
