#include "artifact/differences.h"

namespace tandem::artifact {
namespace {

std::string shown(const Json& json, const Json::json_pointer& place) {
  return json.contains(place) ? JsonValue(json[place], {}).found() : "nothing";
}

}  // namespace

std::vector<Difference> differences(const Json& expected, const Json& found) {
  std::vector<Difference> result;
  for (const Json& change : Json::diff(expected, found)) {
    const Json::json_pointer place(change.at("path").get<std::string>());
    result.push_back({place.to_string(), shown(expected, place), shown(found, place)});
  }
  return result;
}

}  // namespace tandem::artifact
