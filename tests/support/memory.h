// How much memory the test program itself holds.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <fstream>

namespace tandem::test {

// Resident, of the whole process: a software adapter's buffers are among them. Only Linux tells.
inline uint64_t resident_bytes() {
  uint64_t size = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> size >> resident;
  return resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace tandem::test
