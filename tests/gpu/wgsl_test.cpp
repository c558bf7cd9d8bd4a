// The embedded kernels equal the files of the tree; directives keep the branch of their tier.
#include "gpu/wgsl.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>

#include "base/sha256.h"

namespace tandem::gpu {
namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Kernel name -> text with what it includes, from the tree: a kernel lies in its operator's folder,
// what kernels include one above.
std::map<std::string, std::string> kernel_files() {
  const fs::path ops = TANDEM_SOURCE_DIR "/src/ops";
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(ops)) {
    if (entry.path().extension() != ".wgsl" || entry.path().parent_path() == ops) continue;
    std::string& text = files[entry.path().stem().string()] = text_of(entry.path());
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      constexpr std::string_view include = "//#include ";
      if (line.starts_with(include)) text += text_of(ops / line.substr(include.size()));
    }
  }
  return files;
}

TEST(Kernels, AreTheFilesOfTheTree) {
  const auto files = kernel_files();
  ASSERT_FALSE(files.empty());
  ASSERT_EQ(kernels().size(), files.size());
  auto kernel = kernels().begin();
  for (const auto& [name, text] : files) {
    EXPECT_EQ(kernel->name, name);
    EXPECT_EQ(kernel->source, text) << name;
    EXPECT_EQ(kernel->sha256, sha256(text).hex()) << name;
    ++kernel;
  }
}

TEST(Kernels, AreBoundByTheClosureDigest) {
  std::string closure;
  for (const auto& [name, text] : kernel_files()) {
    closure += fmt::format("{} {}\n", name, sha256(text).hex());
  }
  EXPECT_EQ(closure_digest(), sha256(closure).hex());
}

TEST(Kernels, DeclareTheirBindingsInOrder) {
  for (const Wgsl& kernel : kernels()) {
    for (size_t i = 0; i < kernel.bindings.size(); ++i) {
      // The declaration's text up to the name, without spaces.
      const std::string_view source = kernel.source;
      const size_t begin = source.find(fmt::format("@binding({})", i));
      ASSERT_NE(begin, std::string_view::npos) << kernel.name;
      std::string declared(source.substr(begin, source.find('>', begin) - begin));
      declared.erase(std::remove(declared.begin(), declared.end(), ' '), declared.end());
      const std::string_view space = kernel.bindings[i] == Access::uniform ? "var<uniform"
                                     : kernel.bindings[i] == Access::read
                                         ? "var<storage,read"
                                         : "var<storage,read_write";
      EXPECT_TRUE(declared.ends_with(space)) << kernel.name << ": " << declared;
    }
  }
}

TEST(SourceFor, KeepsTheBranchOfTheTierAndTheLineNumbers) {
  constexpr Tiers none{};
  constexpr Tiers subgroups{.subgroups = true};
  constexpr Tiers dp4a{.dp4a = true};
  constexpr Tiers f16{.f16 = true};
  struct Case {
    std::string_view source;
    Tiers tiers;
    std::string_view expected;
  };
  constexpr std::string_view both = "a\n//#if f16\nb\n//#else\nc\n//#end\nd\n";
  constexpr std::string_view first = "a\n  //#if subgroups \nb\n  //#end\nd\n";
  constexpr std::string_view second = "//#if dp4a\n//#else\nc\n//#end\nd";
  constexpr std::string_view two = "//#if f16\na\n//#end\n//#if dp4a\nb\n//#else\nc\n//#end\n";
  const Case cases[] = {
      {"", none, ""},
      {"a // #if\n\nb\n", f16, "a // #if\n\nb\n"},
      {both, f16, "a\n\nb\n\n\n\nd\n"},
      {both, none, "a\n\n\n\nc\n\nd\n"},
      {both, dp4a, "a\n\n\n\nc\n\nd\n"},
      {first, subgroups, "a\n\nb\n\nd\n"},
      {first, none, "a\n\n\n\nd\n"},
      {second, dp4a, "\n\n\n\nd\n"},
      {second, none, "\n\nc\n\nd\n"},
      {two, f16, "\na\n\n\n\n\nc\n\n"},
      {two, dp4a, "\n\n\n\nb\n\n\n\n"},
  };
  for (const Case& c : cases) EXPECT_EQ(source_for(c.source, c.tiers), c.expected) << c.source;
}

}  // namespace
}  // namespace tandem::gpu
