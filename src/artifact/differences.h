// Where two JSON documents differ, for messages.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"

namespace tandem::artifact {

struct Difference {
  std::string place;  // "/config/hidden_size"
  // The values there in a few characters, or "nothing".
  std::string expected;
  std::string found;
};

std::vector<Difference> differences(const Json& expected, const Json& found);

}  // namespace tandem::artifact
