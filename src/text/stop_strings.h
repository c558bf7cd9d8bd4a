// Stop strings: looks for the first of them in text that comes in pieces, and holds back what may
// become one.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace tandem::text {

class StopStrings {
 public:
  StopStrings() = default;
  // Refuses empty strings and those that are not UTF-8.
  static Result<StopStrings> make(std::span<const std::string> strings);

  // Takes whole characters and gives out those that cannot be part of a stop string any more. Once
  // a stop string is complete, that is what lies in front of it, and nothing from then on. Of
  // several that end at the same character, the longest counts.
  std::string push(std::string_view piece);
  // The end of the text: what was held back.
  std::string finish();
  bool found() const { return found_; }

 private:
  std::vector<std::string> strings_;
  std::string held_;  // the beginning of a stop string
  bool found_ = false;
};

}  // namespace tandem::text
