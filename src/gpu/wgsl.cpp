// The directive of the kernels that is resolved at run time: `//#if tier ... //#else ... //#end`.
#include "gpu/wgsl.h"

namespace tandem::gpu {
namespace {

std::string_view trimmed(std::string_view line) {
  const size_t begin = line.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return line.substr(begin, line.find_last_not_of(" \t") + 1 - begin);
}

bool has(const Tiers& tiers, std::string_view tier) {
  return (tier == "subgroups" && tiers.subgroups) || (tier == "dp4a" && tiers.dp4a) ||
         (tier == "f16" && tiers.f16);
}

}  // namespace

std::string source_for(std::string_view source, const Tiers& tiers) {
  constexpr std::string_view if_directive = "//#if ";
  std::string result;
  bool keep = true;
  while (!source.empty()) {
    const size_t end = source.find('\n');
    const std::string_view line = source.substr(0, end);
    source.remove_prefix(end == std::string_view::npos ? source.size() : end + 1);
    const std::string_view directive = trimmed(line);
    if (directive.starts_with(if_directive)) {
      keep = has(tiers, trimmed(directive.substr(if_directive.size())));
    } else if (directive == "//#else") {
      keep = !keep;
    } else if (directive == "//#end") {
      keep = true;
    } else if (keep) {
      result += line;
    }
    // Every line stays, if only as an empty one, so that a compiler's line numbers are the file's.
    result += '\n';
  }
  return result;
}

}  // namespace tandem::gpu
