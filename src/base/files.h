// Reading files: whole with a bound, or at 64-bit offsets. Only regular files are opened.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"

namespace tandem {

// Whether a symbolic link may stand in for a file. Checkpoints in the Hugging Face cache are
// folders of links; in an artifact a link is refused.
enum class Links { refuse, follow };

// Whether there is an entry of this path. A link that leads nowhere and an entry that cannot be
// looked at are there: to read them is an error, not the same as their absence.
bool is_there(const std::filesystem::path& path);

// `folder`/`name`, where `name` is the name of an entry of the folder: no separators, not "." or
// "..", no control characters.
Result<std::filesystem::path> inside(const std::filesystem::path& folder, std::string_view name);

// A file that is open for reading; reads at different offsets may run in parallel.
class File {
 public:
  static Result<File> open(const std::filesystem::path& path, Links links = Links::refuse);
  File(File&& other) noexcept;
  File& operator=(File&& other) noexcept;
  ~File();

  uint64_t size() const { return size_; }  // when it was opened
  const std::string& path() const { return path_; }
  // Fills `bytes` from `offset` on; a file that ends before is an error.
  Result<void> read(uint64_t offset, std::span<std::byte> bytes) const;

 private:
  File(int descriptor, std::string path, uint64_t size)
      : descriptor_(descriptor), path_(std::move(path)), size_(size) {}
  int descriptor_ = -1;
  std::string path_;
  uint64_t size_ = 0;
};

// The whole file, refused if it has more than `max_bytes`.
Result<std::string> read_file(const std::filesystem::path& path, uint64_t max_bytes,
                              Links links = Links::refuse);

}  // namespace tandem
