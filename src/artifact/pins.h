// Pins: the checkpoints that are known, by name, size and sha256 of every file. Those of
// models/sources.json are built in; a user may add a file of his own (docs/artifact.md).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "artifact/receipt.h"

namespace tandem::artifact {

struct PinnedFile {
  std::string file;
  uint64_t bytes = 0;
  std::optional<Digest> sha256;  // where it is known; without it nothing matches the pin
};

struct Pin {
  std::string name;
  std::string role;  // target_role or assistant_role: what it vouches for
  std::optional<Published> published;
  std::vector<PinnedFile> files;  // all that an export reads of the checkpoint, by name
};

struct Pins {
  std::string file;  // that lists them
  Digest sha256;     // of that file
  std::vector<Pin> pins;
};

// Refuses text that is not canonical JSON of the schema, a pin without files, and pins that
// contradict one another: of one name; of one repository and revision, but with another size or
// sha256 of the same file; of one sha256, but with another size.
Result<Pins> read_pins(std::string_view text, std::string_view file);

// The built-in pins and, if a file is named, the user's own, which must not contradict them.
Result<std::vector<Pins>> known_pins(const std::filesystem::path& users = {});

}  // namespace tandem::artifact
