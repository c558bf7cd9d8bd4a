// What the GPU tests share: a small kernel and a check of refusals.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <initializer_list>

#include "support/device.h"

namespace tandem::gpu {

// y[i] = x[i] + ADDEND for each workgroup i.
constexpr std::string_view add_source = R"(
override ADDEND: u32 = 1;
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
@compute @workgroup_size(1) fn main(@builtin(workgroup_id) id: vec3<u32>,
                                    @builtin(num_workgroups) count: vec3<u32>) {
  let i = id.x + id.y * count.x;
  if (i < arrayLength(&y)) { y[i] = x[i] + ADDEND; }
}
)";
constexpr Access add_bindings[] = {Access::read, Access::read_write};

inline Kernel add_kernel(Device& device, std::span<const Constant> constants = {}) {
  return test::expect_value(device.kernel_from_source("add", add_source, add_bindings, constants));
}

// Whether it failed with this code and a message that has all these parts.
template <class T>
testing::AssertionResult refused(const Result<T>& result, ErrorCode code,
                                 std::initializer_list<std::string_view> parts = {}) {
  if (result) return testing::AssertionFailure() << "it was accepted";
  const Error& error = result.error();
  if (error.code != code) {
    return testing::AssertionFailure()
           << fmt::format("{}: {}, expected {}", name(error.code), error.message, name(code));
  }
  for (const std::string_view part : parts) {
    if (error.message.find(part) == std::string::npos) {
      return testing::AssertionFailure() << fmt::format("\"{}\" lacks \"{}\"", error.message, part);
    }
  }
  return testing::AssertionSuccess();
}

template <class T>
testing::AssertionResult accepted(const Result<T>& result) {
  if (result) return testing::AssertionSuccess();
  return testing::AssertionFailure() << result.error().message;
}

}  // namespace tandem::gpu
