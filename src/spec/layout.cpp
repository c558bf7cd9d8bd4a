// Planes of each weight type.
#include "spec/layout.h"

namespace tandem::spec {
namespace {

constexpr std::pair<WeightType, std::string_view> names[] = {{WeightType::q4_0, "q4_0"},
                                                             {WeightType::q8_0, "q8_0"},
                                                             {WeightType::f16, "f16"},
                                                             {WeightType::f32, "f32"},
                                                             {WeightType::u32, "u32"}};

}  // namespace

std::string_view name(WeightType type) {
  for (const auto& [candidate, text] : names) {
    if (candidate == type) return text;
  }
  return "";
}

std::optional<WeightType> weight_type(std::string_view text) {
  for (const auto& [type, candidate] : names) {
    if (candidate == text) return type;
  }
  return std::nullopt;
}

std::vector<PlaneLayout> planes(WeightType type, uint32_t columns) {
  const uint64_t blocks = columns / block_columns;
  const bool quantized = type == WeightType::q4_0 || type == WeightType::q8_0;
  if (columns == 0 || (quantized && columns % block_columns != 0)) return {};
  switch (type) {
    case WeightType::q4_0:
      return {{"quants", "U8", blocks * 16}, {"scales", "F16", blocks * 2}};
    case WeightType::q8_0:
      return {{"quants", "U8", blocks * 32}, {"scales", "F16", blocks * 2}};
    case WeightType::f16:
      return {{"values", "F16", uint64_t{columns} * 2}};
    case WeightType::f32:
      return {{"values", "F32", uint64_t{columns} * 4}};
    case WeightType::u32:
      return {{"values", "U32", uint64_t{columns} * 4}};
  }
  return {};
}

}  // namespace tandem::spec
