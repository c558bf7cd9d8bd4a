// What tests expect of a Result: a value, or an error of a certain code that names certain things.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <string_view>

#include "tandem/error.h"

namespace tandem::test {

template <class T>
::testing::AssertionResult accepted(const Result<T>& result) {
  if (result) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure()
         << name(result.error().code) << ": " << result.error().message;
}

// The error's message must contain all of `words`.
template <class T>
::testing::AssertionResult refused(const Result<T>& result, ErrorCode code,
                                   std::initializer_list<std::string_view> words = {}) {
  if (result)
    return ::testing::AssertionFailure() << "expected " << name(code) << ", but it was accepted";
  const Error& error = result.error();
  if (error.code != code) {
    return ::testing::AssertionFailure()
           << "expected " << name(code) << ", found " << name(error.code) << ": " << error.message;
  }
  for (const std::string_view word : words) {
    if (error.message.find(word) == std::string::npos) {
      return ::testing::AssertionFailure() << "expected \"" << word << "\" in: " << error.message;
    }
  }
  return ::testing::AssertionSuccess();
}

}  // namespace tandem::test
