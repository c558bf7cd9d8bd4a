// The kernels' WGSL, embedded at build time, and what their text declares.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::gpu {

enum class Access : uint8_t { uniform, read, read_write };

// Optional capabilities of an adapter. None set is the base tier, which always works.
struct Tiers {
  bool subgroups = false;
  bool dp4a = false;
  bool f16 = false;
  bool operator==(const Tiers&) const = default;
};

struct Wgsl {
  std::string_view name;             // the file's name without ".wgsl"
  std::string_view source;           // with what it includes
  std::string_view sha256;           // of the source, in hex
  std::span<const Access> bindings;  // of group 0, by binding number
};

// All embedded kernels, sorted by name.
std::span<const Wgsl> kernels();

// The sha256 over the names and digests of all kernels: the kernel closure.
std::string_view closure_digest();

// The source for the given tiers: keeps the first branch of `//#if tier ... //#else ... //#end`
// where the tier is there, the second where it is not. Both branches are optional; they are never
// nested.
std::string source_for(std::string_view source, const Tiers& tiers);

}  // namespace tandem::gpu
