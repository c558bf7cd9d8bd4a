#include "cli/provenance.h"

#include <fmt/format.h>

#include <set>

namespace tandem::cli {
namespace {

std::string_view meaning(artifact::State state) {
  switch (state) {
    case artifact::State::verified:
      return "every source file has the size and sha256 of a pin";
    case artifact::State::pending:
      return "not every source file has the size and sha256 of a pin";
    case artifact::State::synthetic:
      return "random weights";
  }
  return "";
}

}  // namespace

std::string describe(const artifact::Provenance& provenance) {
  std::string text =
      fmt::format("provenance    {}: {}\n", name(provenance.state), meaning(provenance.state));
  std::set<std::string> lists;
  for (const artifact::Match& match : provenance.matches) {
    text += fmt::format("  {:<11} {}\n", match.part, printable(match.pin));
    lists.insert(
        fmt::format("  pins        {} {}\n", match.pins_sha256.hex(), printable(match.pins_file)));
  }
  for (const std::string& list : lists) text += list;
  for (const std::string& reason : provenance.reasons)
    text += fmt::format("  {}\n", printable(reason));
  return text;
}

Json to_json(const artifact::Provenance& provenance) {
  Json matches = Json::array();
  for (const artifact::Match& match : provenance.matches) {
    matches.push_back({{"part", match.part},
                       {"pin", match.pin},
                       {"pins_file", match.pins_file},
                       {"pins_sha256", match.pins_sha256.hex()}});
  }
  return {{"state", name(provenance.state)}, {"matches", matches}, {"reasons", provenance.reasons}};
}

}  // namespace tandem::cli
