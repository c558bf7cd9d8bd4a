// release.json: which browser modules go with an artifact. It binds the artifact's digest and the
// eight files of the modules, each js and wasm for plain and MTP, wall and profile, by sha256.
#pragma once

#include <array>
#include <filesystem>
#include <string>
#include <string_view>

#include "artifact/manifest.h"

namespace tandem::artifact {

inline constexpr std::string_view release_file = "release.json";

struct ReleaseBuild {
  BoundFile js;
  BoundFile wasm;
  bool operator==(const ReleaseBuild&) const = default;
};

struct ReleaseTarget {
  Digest kernel_closure;  // over the kernels of its modules
  ReleaseBuild wall;
  ReleaseBuild profile;
};

struct Release {
  std::string engine;  // the version, "0.1.0"
  Digest artifact;     // the sha256 of its manifest
  ReleaseTarget plain;
  ReleaseTarget mtp;
};

std::string release_text(const Release& release);
// Refuses text that is not the release_text of its result.
Result<Release> read_release(std::string_view text);

// Of the modules in a folder, which holds nothing else but a release.json. Each wasm file says
// itself what it is: one that lies under another's name is refused.
Result<Release> make_release(const Digest& artifact, const std::filesystem::path& modules);

// Whether the release is that of this artifact and of the modules in this folder.
Result<void> verify_release(const Release& release, const Digest& artifact,
                            const std::filesystem::path& modules);

}  // namespace tandem::artifact
