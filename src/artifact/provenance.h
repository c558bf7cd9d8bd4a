// Whether an artifact's sources are known: a function of its receipt and of pins, and stored
// nowhere, so that no file can claim it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "artifact/pins.h"

namespace tandem::artifact {

enum class State {
  verified,   // every source file of every part has name, size and sha256 of a pin
  pending,    // some have not
  synthetic,  // random weights, which come from no checkpoint
};
std::string_view name(State state);

// A part of an artifact whose sources are those of a pin.
struct Match {
  std::string part;  // "target" or "assistant"
  std::string pin;
  std::string pins_file;
  Digest pins_sha256;  // of that file
};

struct Provenance {
  State state = State::pending;
  std::vector<Match> matches;
  // Of pending: for each part without a match, what tells it from the nearest pin, with both
  // values, or that there is none near it.
  std::vector<std::string> reasons;
};

Provenance provenance(const Receipt& receipt, std::span<const Pins> pins);

// The pin of a role that these sources match in full, or null.
const Pin* matching_pin(std::string_view role, const Origin& origin, std::span<const Pins> pins);

// Refuses all but `verified`, with the reasons. `artifact` names it in the message.
Result<void> require_verified(const Provenance& provenance, std::string_view artifact);

}  // namespace tandem::artifact
