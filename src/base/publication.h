// Publishing a folder or a file so that it appears complete or not at all, and replaces nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"

namespace tandem {

// What a publication has done, in this order; the steps of files repeat.
enum class PublicationStep {
  folder_made,    // the staging folder, hidden beside the destination, is there and locked
  file_made,      // a file of it is there
  file_written,   // with some bytes, or some more
  file_synced,    // and all of them are on the disk
  folder_synced,  // the files' names are on the disk
  checked,        // what was read back is what it should be
  renamed,        // the destination is there
  parent_synced,  // and on the disk
};

std::string_view name(PublicationStep step);

// Told of every step when it is done. Tests interfere there.
using PublicationObserver = std::function<void(PublicationStep)>;

// A new file that is being written. What is not closed does not count as written.
class OutputFile {
 public:
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&& other) noexcept;
  ~OutputFile();

  Result<void> write(std::span<const std::byte> bytes);
  Result<void> write(std::string_view text) {
    return write(std::as_bytes(std::span<const char>(text)));
  }
  uint64_t bytes_written() const { return bytes_written_; }
  const std::string& path() const { return path_; }  // where it is staged
  // Brings the bytes to the disk, from where they are then read back.
  Result<void> close();

 private:
  friend class Publication;
  struct Staged;
  OutputFile(std::shared_ptr<Staged> staged, std::string name, std::string path, int descriptor);
  std::shared_ptr<Staged> staged_;
  std::string name_;
  std::string path_;
  int descriptor_ = -1;
  uint64_t bytes_written_ = 0;
};

// A folder in the making: a hidden sibling of the destination until `commit` renames it. Without a
// commit all of it is removed again; what a process left that was killed, the next publication of
// the same destination removes. The folder of a process that lives is locked and stays.
class Publication {
 public:
  // Refuses a destination that exists, whatever it is, or differs only in the case of letters from
  // a neighbour, one whose parent does not exist, and one inside an artifact.
  static Result<Publication> begin(const std::filesystem::path& destination,
                                   PublicationObserver observer = {});
  Publication(Publication&&) noexcept;
  Publication& operator=(Publication&&) noexcept;
  ~Publication();

  const std::filesystem::path& destination() const;  // absolute, without symbolic links
  // A new file of the folder; `name` as for `inside`, and not that of another file in another case.
  Result<OutputFile> create(std::string_view name);
  // Refused while a file is not closed; afterwards the destination is there and on the disk.
  // `check` reads the staged folder when all of it is on the disk; where it fails, so does the
  // commit.
  Result<void> commit(const std::function<Result<void>(const std::filesystem::path&)>& check = {});

 private:
  explicit Publication(std::shared_ptr<OutputFile::Staged> staged);
  Result<void> check_open() const;
  std::shared_ptr<OutputFile::Staged> staged_;
};

// The same for a single file.
class FilePublication {
 public:
  static Result<FilePublication> begin(const std::filesystem::path& destination);

  const std::filesystem::path& destination() const { return folder_.destination(); }
  OutputFile& file() { return file_; }
  // Closes and publishes the file.
  Result<void> commit();

 private:
  FilePublication(Publication folder, OutputFile file)
      : folder_(std::move(folder)), file_(std::move(file)) {}
  Publication folder_;
  OutputFile file_;
};

namespace detail {

enum class Kind { folder, file };

// The rename of file systems that have none that refuses to replace. A folder can take the place of
// an empty folder that appears at that very moment, and of nothing else; a file gets its name by a
// hard link, and the old name stays until its folder goes.
Result<void> rename_after_a_look(const std::filesystem::path& from, const std::filesystem::path& to,
                                 Kind kind);

}  // namespace detail

}  // namespace tandem
