// How the library makes and hands on errors.
#pragma once

#include <fmt/format.h>

#include <span>
#include <string>
#include <utility>

#include "tandem/error.h"

namespace tandem {

// The text with its control characters, and bytes that are no UTF-8, as escapes: a name that comes
// from a file neither moves a terminal's cursor nor looks like another line.
std::string printable(std::string_view text);

// "a, b and 12 more": the first 5 names, or "none".
std::string first_few(std::span<const std::string> names);

// fail(ErrorCode::io, "{}: cannot read: {}", path, reason), as a return value of any Result. The
// message is made printable.
template <class... Args>
tl::unexpected<Error> fail(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
  return tl::unexpected<Error>(
      Error{code, printable(fmt::format(format, std::forward<Args>(args)...))});
}

}  // namespace tandem

#define TANDEM_CONCAT_(a, b) a##b
#define TANDEM_CONCAT(a, b) TANDEM_CONCAT_(a, b)

// TRY(expression): returns from the calling function with the expression's error, if it has one.
#define TRY(expression)                                                        \
  do {                                                                         \
    if (auto try_result = (expression); !try_result) {                         \
      return ::tl::unexpected<::tandem::Error>(std::move(try_result).error()); \
    }                                                                          \
  } while (false)

// TRY_ASSIGN(auto value, expression): the same, and otherwise keeps the expression's value.
#define TRY_ASSIGN(declaration, expression) \
  TRY_ASSIGN_(TANDEM_CONCAT(try_result_, __LINE__), declaration, expression)
#define TRY_ASSIGN_(result, declaration, expression)                                \
  auto result = (expression);                                                       \
  if (!result) return ::tl::unexpected<::tandem::Error>(std::move(result).error()); \
  declaration = std::move(*result)
