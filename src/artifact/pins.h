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
  std::optional<Published> published;
  std::vector<PinnedFile> files;  // all that an export reads of the checkpoint, by name
};

struct Pins {
  std::string file;  // that lists them
  Digest sha256;     // of that file
  std::vector<Pin> pins;
};

// Refuses text that is not canonical JSON of the schema; a name used twice; a pin without files.
Result<Pins> read_pins(std::string_view text, std::string_view file);

// The built-in pins and, if a file is named, the user's own.
Result<std::vector<Pins>> known_pins(const std::filesystem::path& users = {});

}  // namespace tandem::artifact
