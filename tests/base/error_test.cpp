// Error codes have names and meanings of their own; TRY hands errors on.
#include "base/error.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>

namespace tandem {
namespace {

TEST(Error, EveryCodeHasItsOwnNameAndMeaning) {
  std::set<std::string_view> names, meanings;
  constexpr int count = static_cast<int>(ErrorCode::internal) + 1;
  for (int i = 0; i < count; ++i) {
    names.insert(name(ErrorCode(i)));
    meanings.insert(meaning(ErrorCode(i)));
  }
  EXPECT_EQ(names.size(), size_t{count});
  EXPECT_EQ(meanings.size(), size_t{count});
}

Result<int> half_of(int value) {
  if (value % 2 != 0) return fail(ErrorCode::bad_value, "{} is odd", value);
  return value / 2;
}
Result<std::unique_ptr<int>> quarter_of(int value) {
  TRY_ASSIGN(const int half, half_of(value));
  TRY(half_of(half));
  TRY_ASSIGN(auto quarter, half_of(half));
  return std::make_unique<int>(quarter);
}

TEST(Error, TryHandsOnTheFirstErrorAndOtherwiseTheValue) {
  EXPECT_EQ(**quarter_of(12), 3);
  const auto odd = quarter_of(6);
  ASSERT_FALSE(odd);
  EXPECT_EQ(odd.error().code, ErrorCode::bad_value);
  EXPECT_EQ(odd.error().message, "3 is odd");
}

}  // namespace
}  // namespace tandem
