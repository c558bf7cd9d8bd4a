#include "artifact/provenance.h"

#include <algorithm>
#include <map>

#include "base/error.h"

namespace tandem::artifact {
namespace {

std::string describe(const std::optional<Published>& published) {
  return published ? fmt::format("{} at {}", published->repository, published->revision)
                   : "no repository";
}

// In words, of a file that does not match its pin in full.
std::string difference(const BoundFile& found, const PinnedFile& pinned) {
  if (found.bytes != pinned.bytes)
    return fmt::format("expected {} bytes, found {}", pinned.bytes, found.bytes);
  if (!pinned.sha256) return fmt::format("no sha256 is known, found {}", found.sha256.hex());
  return fmt::format("expected sha256 {}, found {}", pinned.sha256->hex(), found.sha256.hex());
}

// Sources beside a pin.
struct Comparison {
  size_t alike = 0;  // files that the pin does not contradict
  // Most files have their names and sizes in the pin, or the repository is the pin's.
  bool near = false;
  std::vector<std::string> differences;
};

Comparison compare(const Origin& origin, const Pin& pin) {
  Comparison result;
  result.near = origin.published && pin.published &&
                origin.published->repository == pin.published->repository;
  const auto differ = [&](const std::string& subject, const std::string& text) {
    result.differences.push_back(fmt::format("{}: by the pin {}: {}", subject, pin.name, text));
  };
  size_t same_size = 0;
  std::map<std::string, const BoundFile*> sources;
  for (const BoundFile& source : origin.sources) sources[source.file] = &source;
  for (const PinnedFile& pinned : pin.files) {
    const auto source = sources.find(pinned.file);
    if (source == sources.end()) {
      differ(pinned.file, fmt::format("expected a file of {} bytes, found none", pinned.bytes));
      continue;
    }
    const BoundFile& found = *source->second;
    sources.erase(source);
    const bool contradicts =
        found.bytes != pinned.bytes || (pinned.sha256 && found.sha256 != *pinned.sha256);
    if (!contradicts) ++result.alike;
    if (found.bytes == pinned.bytes) ++same_size;
    if (contradicts || !pinned.sha256) differ(pinned.file, difference(found, pinned));
  }
  if (2 * same_size > pin.files.size()) result.near = true;
  for (const auto& [file, source] : sources)
    differ(file, fmt::format("expected no such file, found sha256 {}", source->sha256.hex()));
  if (origin.published && origin.published != pin.published) {
    differ("published", fmt::format("expected {}, found {}", describe(pin.published),
                                    describe(origin.published)));
  }
  return result;
}

// What an origin without any near pin is told.
std::string no_pin(std::string_view part, const Origin& origin) {
  std::vector<std::string> files;
  for (const BoundFile& source : origin.sources) files.push_back(source.file);
  return fmt::format("expected the files of a pin for the {}, found {}, which none is near to",
                     part, first_few(files));
}

// The match of a part, or the reasons why there is none: what tells it from the nearest pin.
void judge(std::string_view part, const Origin& origin, std::span<const Pins> all,
           Provenance& result) {
  std::optional<Comparison> nearest;
  for (const Pins& pins : all) {
    for (const Pin& pin : pins.pins) {
      if (pin.role != part) continue;
      Comparison found = compare(origin, pin);
      if (found.differences.empty()) {
        result.matches.push_back({std::string(part), pin.name, pins.file, pins.sha256});
        return;
      }
      const auto distance = [](const Comparison& c) {
        return std::pair(-static_cast<int64_t>(c.alike), c.differences.size());
      };
      if (!found.near) continue;
      if (!nearest || distance(found) < distance(*nearest)) nearest = std::move(found);
    }
  }
  if (!nearest) nearest = Comparison{0, false, {no_pin(part, origin)}};
  for (const std::string& text : nearest->differences)
    result.reasons.push_back(fmt::format("{}: {}", part, text));
}

}  // namespace

std::string_view name(State state) {
  switch (state) {
    case State::verified:
      return "verified";
    case State::pending:
      return "pending";
    case State::synthetic:
      return "synthetic";
  }
  return "";
}

Provenance provenance(const Receipt& receipt, std::span<const Pins> pins) {
  Provenance result;
  const auto is_random = [](const std::optional<Origin>& origin) {
    return origin && origin->synthetic_seed;
  };
  if (is_random(receipt.target) || is_random(receipt.assistant)) {
    result.state = State::synthetic;
    return result;
  }
  if (receipt.target) judge(target_role, *receipt.target, pins, result);
  if (receipt.assistant) judge(assistant_role, *receipt.assistant, pins, result);
  if (result.reasons.empty() && !result.matches.empty()) result.state = State::verified;
  return result;
}

const Pin* matching_pin(std::string_view role, const Origin& origin, std::span<const Pins> pins) {
  for (const Pins& list : pins) {
    for (const Pin& pin : list.pins) {
      if (pin.role == role && compare(origin, pin).differences.empty()) return &pin;
    }
  }
  return nullptr;
}

Result<void> require_verified(const Provenance& provenance, std::string_view artifact) {
  if (provenance.state == State::verified) return {};
  if (provenance.state == State::synthetic) {
    return fail(ErrorCode::unverified,
                "{}: expected verified sources, found random weights; export a checkpoint",
                artifact);
  }
  return fail(ErrorCode::unverified,
              "{}: expected verified sources, found: {}; take a checkpoint with a pin, or name "
              "pins of your own (--sources)",
              artifact, fmt::join(provenance.reasons, "; "));
}

}  // namespace tandem::artifact
