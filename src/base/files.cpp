// Reading through POSIX descriptors.
#include "base/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace tandem {
namespace {

std::string reason(int error) { return std::generic_category().message(error); }

tl::unexpected<Error> cannot_open(const std::string& path, int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return fail(ErrorCode::not_found, "{}: there is no such file", path);
    case ELOOP:
      return fail(ErrorCode::unsafe_path,
                  "{}: expected a regular file, found a symbolic link; give the file itself", path);
    default:
      return fail(ErrorCode::io, "{}: cannot be opened: {}", path, reason(error));
  }
}

}  // namespace

bool is_there(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::symlink_status(path, error).type() !=
         std::filesystem::file_type::not_found;
}

Result<std::filesystem::path> inside(const std::filesystem::path& folder, std::string_view name) {
  bool safe = !name.empty() && name != "." && name != "..";
  for (const char c : name) {
    safe = safe && c != '/' && c != '\\' && static_cast<unsigned char>(c) >= 0x20 && c != 0x7f;
  }
  if (!safe) {
    return fail(ErrorCode::unsafe_path,
                "{}: expected the plain name of a file of this folder, found \"{}\"",
                folder.string(), name);
  }
  return folder / name;
}

Result<File> File::open(const std::filesystem::path& path, Links links) {
  // Non-blocking, so that opening a FIFO does not wait for a writer; regular files don't care.
  const int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | (links == Links::refuse ? O_NOFOLLOW : 0);
  const int descriptor = ::open(path.c_str(), flags);
  if (descriptor < 0) return cannot_open(path.string(), errno);
  File file(descriptor, path.string(), 0);
  struct stat status;
  if (fstat(descriptor, &status) != 0) return cannot_open(file.path(), errno);
  if (!S_ISREG(status.st_mode)) {
    return fail(ErrorCode::unsafe_path, "{}: expected a regular file, found {}", file.path(),
                S_ISDIR(status.st_mode) ? "a folder" : "a device, pipe or socket");
  }
  file.size_ = static_cast<uint64_t>(status.st_size);
  return file;
}

File::File(File&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      path_(std::move(other.path_)),
      size_(other.size_) {}

File& File::operator=(File&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(path_, other.path_);
  std::swap(size_, other.size_);
  return *this;
}

File::~File() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Result<void> File::read(uint64_t offset, std::span<std::byte> bytes) const {
  // Checked first: the file may be shorter than any offset that pread can take.
  if (offset > size_ || bytes.size() > size_ - offset) {
    return fail(ErrorCode::io, "{}: expected {} bytes from offset {}, but the file has only {}",
                path_, bytes.size(), offset, size_);
  }
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t count = pread(descriptor_, bytes.data() + done, bytes.size() - done,
                                static_cast<off_t>(offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      return fail(ErrorCode::io, "{}: cannot read {} bytes from offset {}: {}", path_, bytes.size(),
                  offset, reason(errno));
    }
    if (count == 0) {
      return fail(ErrorCode::io,
                  "{}: expected {} bytes from offset {}, but the file was cut to {} bytes while "
                  "it was read",
                  path_, bytes.size(), offset, offset + done);
    }
    done += static_cast<size_t>(count);
  }
  return {};
}

Result<std::string> read_file(const std::filesystem::path& path, uint64_t max_bytes, Links links) {
  TRY_ASSIGN(const File file, File::open(path, links));
  if (file.size() > max_bytes) {
    return fail(ErrorCode::bad_value, "{}: expected at most {} bytes, found {}", file.path(),
                max_bytes, file.size());
  }
  std::string text(file.size(), '\0');
  TRY(file.read(0, std::as_writable_bytes(std::span(text))));
  return text;
}

}  // namespace tandem
