// Compilation: every embedded kernel on every tier, constants, and what is refused.
#include <gtest/gtest.h>

#include <set>

#include "gpu/probe.h"

namespace tandem::gpu {
namespace {

using test::download_as;
using test::expect_value;
using test::open_device;
using test::test_device;
using test::upload;

// Values for the overrides of a kernel that have no default: a small power of two suits all.
std::vector<Constant> missing_constants(std::string_view source) {
  std::vector<Constant> constants;
  constexpr std::string_view keyword = "\noverride ";
  for (size_t at = source.find(keyword); at != std::string_view::npos;
       at = source.find(keyword, at + 1)) {
    const size_t begin = at + keyword.size();
    const std::string_view declaration = source.substr(begin, source.find(';', begin) - begin);
    if (declaration.find('=') != std::string_view::npos) continue;
    const bool is_bool = declaration.ends_with("bool");
    const std::string_view name = declaration.substr(0, declaration.find(':'));
    // Sizes that each kernel may have.
    const double size = name == "HEAD_DIM" ? 64 : name == "TEAMS" ? 1 : 8;
    constants.push_back({name, is_bool ? 1.0 : size});
  }
  return constants;
}

TEST(Kernel, EveryEmbeddedOneCompilesOnEveryTier) {
  const Tiers available = test_device().info().tiers;
  std::set<std::string> compiled;
  for (int on = 0; on < 8; ++on) {
    const Tiers tiers{.subgroups = (on & 1) != 0, .dp4a = (on & 2) != 0, .f16 = (on & 4) != 0};
    if ((tiers.subgroups && !available.subgroups) || (tiers.dp4a && !available.dp4a) ||
        (tiers.f16 && !available.f16)) {
      continue;
    }
    const std::unique_ptr<Device> device = open_device(
        {.disabled = {.subgroups = !tiers.subgroups, .dp4a = !tiers.dp4a, .f16 = !tiers.f16}});
    ASSERT_EQ(device->info().tiers, tiers);
    for (const Wgsl& kernel : kernels()) {
      // A text that compiles on few tiers compiles on more.
      if (!compiled.insert(source_for(kernel.source, tiers)).second) continue;
      expect_value(device->kernel(kernel.name, missing_constants(kernel.source)));
      EXPECT_TRUE(accepted(device->finish_kernels()))
          << fmt::format("{}", fmt::join(tier_names(tiers), " "));
    }
    // Base comes first and has them all.
    if (on == 0) {
      ASSERT_EQ(device->census().kernels, kernels().size());
    }
  }
}

TEST(Kernel, FollowsItsConstants) {
  Device& device = test_device();
  const Constant seven[] = {{"ADDEND", 7}};
  const Kernel by_default = add_kernel(device);
  const Kernel by_seven = add_kernel(device, seven);
  EXPECT_NE(by_default, by_seven);
  EXPECT_EQ(by_seven, add_kernel(device, seven)) << "one request is compiled once";
  const Census census = device.census();
  EXPECT_GE(census.kernels, 2u);
  EXPECT_GT(census.compile_ms, 0);

  const Buffer x = upload(std::vector<uint32_t>{1, 2});
  const Buffer y = test::poisoned(8);
  const Buffer z = test::poisoned(8);
  CommandList commands(device);
  ASSERT_TRUE(accepted(
      commands.dispatch(by_default, {read(x.view()), read_write(y.view())}, {.groups = 2})));
  ASSERT_TRUE(
      accepted(commands.dispatch(by_seven, {read(x.view()), read_write(z.view())}, {.groups = 2})));
  test::run(commands);
  EXPECT_EQ(download_as<uint32_t>(y.view()), (std::vector<uint32_t>{2, 3}));
  EXPECT_EQ(download_as<uint32_t>(z.view()), (std::vector<uint32_t>{8, 9}));
}

TEST(Kernel, FollowsTheTiersOfItsDevice) {
  constexpr std::string_view source = R"(
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@compute @workgroup_size(1) fn main() {
//#if dp4a
  y[0] = 4;
//#else
  y[0] = 1;
//#end
}
)";
  constexpr Access bindings[] = {Access::read_write};
  ASSERT_TRUE(test_device().info().tiers.dp4a);
  for (const bool off : {false, true}) {
    const std::unique_ptr<Device> device = open_device({.disabled = {.dp4a = off}});
    const Kernel kernel = expect_value(device->kernel_from_source("tier", source, bindings));
    const Buffer y = test::poisoned(4, *device);
    CommandList commands(*device);
    ASSERT_TRUE(accepted(commands.dispatch(kernel, {read_write(y.view())}, {})));
    test::run(commands);
    EXPECT_EQ(download_as<uint32_t>(y.view(), *device), std::vector<uint32_t>{off ? 1u : 4u});
  }
}

TEST(Kernel, RefusesBadSourcesWithTheCompilersWordsAndGoesOn) {
  struct Case {
    std::string_view label;
    std::string_view source;
    std::vector<Constant> constants;
    std::string_view complaint;
  };
  const Case cases[] = {
      {"syntax", "@compute @workgroup_size(1) fn main() { let x = ; }", {}, "1:49"},
      {"unknown", "\n@compute @workgroup_size(1)\nfn main() { let x = missing; }", {}, "3:21"},
      {"entry_point", "@compute @workgroup_size(1) fn other() {}", {}, "main"},
      {"unknown_constant", add_source, {{"ADDENDUM", 1}}, "ADDENDUM"},
      {"missing_constant", "override N: u32;\n@compute @workgroup_size(N) fn main() {}", {}, "N"},
      {"undeclared_binding",
       "@group(0) @binding(2) var<storage, read_write> y: u32;\n"
       "@compute @workgroup_size(1) fn main() { y = 1; }",
       {},
       "binding"},
      {"invocations", "@compute @workgroup_size(65536) fn main() {}", {}, "orkgroup"},
  };
  const std::unique_ptr<Device> device = open_device();
  for (const Case& c : cases) {
    const Kernel bad =
        expect_value(device->kernel_from_source(c.label, c.source, add_bindings, c.constants));
    EXPECT_TRUE(
        refused(device->finish_kernels(), ErrorCode::gpu_validation, {c.label, c.complaint}));
    EXPECT_TRUE(accepted(device->finish_kernels())) << "it is reported once";

    // A list that uses it is refused whenever it is submitted.
    const Buffer x = upload(std::vector<uint32_t>{1}, *device);
    const Buffer y = test::poisoned(4, *device);
    CommandList commands(*device);
    ASSERT_TRUE(accepted(commands.dispatch(bad, {read(x.view()), read_write(y.view())}, {})));
    for (int i = 0; i < 2; ++i) {
      EXPECT_TRUE(refused(device->submit({.items = {{&commands, {}}}}), ErrorCode::gpu_validation,
                          {c.label, c.complaint}));
    }

    CommandList good(*device);
    ASSERT_TRUE(
        accepted(good.dispatch(add_kernel(*device), {read(x.view()), read_write(y.view())}, {})));
    test::run(good);
    EXPECT_EQ(download_as<uint32_t>(y.view(), *device), std::vector<uint32_t>{2}) << c.label;
  }
  EXPECT_TRUE(refused(device->kernel("no_such_kernel", {}), ErrorCode::not_found,
                      {"no_such_kernel", std::to_string(kernels().size())}));
}

TEST(Kernel, ErrorsComeFromTheFirstSubmissionIfNothingWaited) {
  const std::unique_ptr<Device> device = open_device();
  expect_value(device->kernel_from_source("broken", "fn main( {", {}));
  EXPECT_TRUE(refused(device->submit({}), ErrorCode::gpu_validation, {"broken"}));
  EXPECT_TRUE(accepted(device->submit({})));
}

}  // namespace
}  // namespace tandem::gpu
