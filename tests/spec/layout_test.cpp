// The sizes of weight planes.
#include "spec/layout.h"

#include <gtest/gtest.h>

namespace tandem::spec {
namespace {

TEST(Layout, PlanesOfEachType) {
  struct Plane {
    std::string_view suffix, dtype;
    uint64_t bytes_per_row;
  };
  struct Case {
    WeightType type;
    uint32_t columns;
    std::vector<Plane> planes;
  };
  const Case cases[] = {
      {WeightType::q4_0, 32, {{"quants", "U8", 16}, {"scales", "F16", 2}}},
      {WeightType::q4_0, 1536, {{"quants", "U8", 768}, {"scales", "F16", 96}}},
      {WeightType::q8_0, 1536, {{"quants", "U8", 1536}, {"scales", "F16", 96}}},
      {WeightType::f16, 6, {{"values", "F16", 12}}},
      {WeightType::f32, 1, {{"values", "F32", 4}}},
      // Bytes of a row beyond 32 bits.
      {WeightType::f32, 0x80000000u, {{"values", "F32", uint64_t{1} << 33}}},
      // A block would be cut.
      {WeightType::q4_0, 33, {}},
      {WeightType::q8_0, 16, {}},
      {WeightType::f32, 0, {}},
  };
  for (const Case& c : cases) {
    const std::vector<PlaneLayout> found = planes(c.type, c.columns);
    ASSERT_EQ(found.size(), c.planes.size()) << name(c.type) << " " << c.columns;
    for (size_t i = 0; i < found.size(); ++i) {
      EXPECT_EQ(found[i].suffix, c.planes[i].suffix) << name(c.type) << " " << c.columns;
      EXPECT_EQ(found[i].dtype, c.planes[i].dtype) << name(c.type) << " " << c.columns;
      EXPECT_EQ(found[i].bytes_per_row, c.planes[i].bytes_per_row)
          << name(c.type) << " " << c.columns;
    }
  }
}

TEST(Layout, TypeNamesReadBackAndOthersDoNot) {
  for (const WeightType type :
       {WeightType::q4_0, WeightType::q8_0, WeightType::f16, WeightType::f32}) {
    EXPECT_EQ(weight_type(name(type)), type);
  }
  for (const std::string_view other : {"", "Q4_0", "q4_1", "bf16", "f16 "}) {
    EXPECT_FALSE(weight_type(other)) << other;
  }
}

}  // namespace
}  // namespace tandem::spec
