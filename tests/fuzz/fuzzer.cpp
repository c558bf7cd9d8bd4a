// A libFuzzer program of the target that TANDEM_FUZZ_TARGET names.
#include <algorithm>

#include "fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto target = std::ranges::find(tandem::test::fuzz_targets(), TANDEM_FUZZ_TARGET,
                                               &tandem::test::FuzzTarget::name);
  (void)target->read({reinterpret_cast<const char*>(data), size});
  return 0;
}
