// Publishing a folder or a file so that it appears complete or not at all, and replaces nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"

namespace tandem {

// A new file that is being written. What is not closed does not count as written.
class OutputFile {
 public:
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&& other) noexcept;
  ~OutputFile();

  Result<void> write(std::span<const std::byte> bytes);
  Result<void> write(std::string_view text) { return write(std::as_bytes(std::span(text))); }
  uint64_t bytes_written() const { return bytes_written_; }
  const std::string& path() const { return path_; }  // where it is staged
  // Brings the bytes to the disk.
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
// commit all of it is removed again.
class Publication {
 public:
  // Refuses a destination that exists, whatever it is, and one whose parent does not exist.
  static Result<Publication> begin(const std::filesystem::path& destination);
  Publication(Publication&&) noexcept;
  Publication& operator=(Publication&&) noexcept;
  ~Publication();

  // A new file of the folder; `name` as for `inside`.
  Result<OutputFile> create(std::string_view name);
  // Refused while a file is not closed; afterwards the destination is there and on the disk.
  Result<void> commit();

 private:
  explicit Publication(std::shared_ptr<OutputFile::Staged> staged);
  Result<void> check_open() const;
  std::shared_ptr<OutputFile::Staged> staged_;
};

// The same for a single file.
class FilePublication {
 public:
  static Result<FilePublication> begin(const std::filesystem::path& destination);

  OutputFile& file() { return file_; }
  // Closes and publishes the file.
  Result<void> commit();

 private:
  FilePublication(Publication folder, OutputFile file, std::filesystem::path destination)
      : folder_(std::move(folder)), file_(std::move(file)), destination_(std::move(destination)) {}
  Publication folder_;
  OutputFile file_;
  std::filesystem::path destination_;
};

namespace detail {

enum class Kind { folder, file };

// The rename of file systems that have none that refuses to replace: a folder replaces an empty
// folder that is made only if the name is free; a file gets its name by a hard link, and the old
// name stays until its folder goes.
Result<void> rename_by_reserving(const std::filesystem::path& from, const std::filesystem::path& to,
                                 Kind kind);

}  // namespace detail

}  // namespace tandem
