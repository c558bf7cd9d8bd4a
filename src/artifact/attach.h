// Whether an attached assistant belongs to a plain artifact.
#pragma once

#include <string_view>

#include "artifact/manifest.h"

namespace tandem::artifact {

// An artifact's manifest, with the name and digest that messages call it by.
struct Named {
  const Manifest& manifest;
  std::string_view folder;
  Digest digest;
};

// Refuses an artifact that is no attached one, and one whose manifest says anything else of the
// target than `plain` is: digest, geometry, tokenizer, recipe and all else. Names both values.
Result<void> check_attached(const Named& attached, const Named& plain);

}  // namespace tandem::artifact
