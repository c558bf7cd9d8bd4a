// An export's memory does not grow with the checkpoint.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "exporter/export.h"
#include "support/checkpoint.h"
#include "support/child.h"
#include "support/refusal.h"

namespace tandem::test {
namespace {

namespace fs = std::filesystem;

// With an address sanitizer every byte has a shadow, and freed ones are kept for a while.
#ifdef __SANITIZE_ADDRESS__
constexpr bool counts_all_memory = true;
#elif defined(__has_feature)
constexpr bool counts_all_memory = __has_feature(address_sanitizer);
#else
constexpr bool counts_all_memory = false;
#endif

TEST(ExportMemory, IsBoundedWhateverTheCheckpoint) {
  if (counts_all_memory) GTEST_SKIP() << "the sanitizer's memory is larger than the program's";
  constexpr long bound_kib = 192 << 10;
  TinyShape shape;
  shape.vocabulary = 262'144;
  shape.per_layer_input = 128;  // in each of the 6 layers
  const TemporaryFolder folder;
  write_zero_checkpoint(folder.path() / "in", tiny_config(shape));
  const uint64_t bytes = fs::file_size(folder.path() / "in" / "model.safetensors");
  EXPECT_GT(bytes, uint64_t{2} * bound_kib << 10);
  const Ending ending =
      Child([&] {
        return accepted(exporter::export_checkpoint(folder.path() / "in", folder.path() / "out"))
                   ? 0
                   : 1;
      }).wait();
  EXPECT_EQ(ending.status, 0);
  EXPECT_LT(ending.peak_kib, bound_kib);
  fmt::print("{} MiB at most for a checkpoint of {} MiB\n", ending.peak_kib >> 10, bytes >> 20);
}

}  // namespace
}  // namespace tandem::test
