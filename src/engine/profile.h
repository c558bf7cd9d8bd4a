// Where a GPU's time goes: the times of dispatches, summed by kernel and shape, or as a trace.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "gpu/device.h"

namespace tandem::engine {

// The dispatches of one submission in the order they ran.
using SubmissionTimes = std::vector<gpu::DispatchTime>;

struct KernelProfile {
  std::string kernel;  // with its shape
  uint64_t calls = 0;
  uint64_t time_ns = 0;
  std::optional<uint64_t> bytes;  // none if a call has no account of its bytes
};

struct Profile {
  std::vector<KernelProfile> kernels;  // the longest time first; of equals by name
  uint64_t calls = 0;
  uint64_t time_ns = 0;  // the sum over the kernels
  uint64_t gap_ns = 0;   // between the first and the last dispatch of a submission, when none ran
};

Profile profile(std::span<const SubmissionTimes> submissions);

// Bytes for each nanosecond of a kernel, which are GB/s.
std::optional<double> gigabytes_per_second(const KernelProfile& kernel);

// A trace's line: what ran for one method.
struct Track {
  std::string name;
  std::vector<SubmissionTimes> submissions;
};

// Chrome's trace event format, which Perfetto opens; time 0 is the earliest dispatch.
Json trace(std::span<const Track> tracks);

}  // namespace tandem::engine
