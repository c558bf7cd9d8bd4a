#include "engine/profile.h"

#include <algorithm>
#include <map>

namespace tandem::engine {
namespace {

void add(KernelProfile& kernel, const gpu::DispatchTime& time) {
  ++kernel.calls;
  kernel.time_ns += time.end_ns - time.begin_ns;
  if (!time.dispatch.traffic) kernel.bytes.reset();
  if (kernel.bytes) *kernel.bytes += gpu::bytes(*time.dispatch.traffic, time.extent);
}

// Dispatches may overlap: what is idle is what none of the earlier ones covers.
uint64_t gaps(const SubmissionTimes& times) {
  uint64_t idle = 0;
  uint64_t covered_to = times.empty() ? 0 : times.front().begin_ns;
  for (const gpu::DispatchTime& time : times) {
    if (time.begin_ns > covered_to) idle += time.begin_ns - covered_to;
    covered_to = std::max(covered_to, time.end_ns);
  }
  return idle;
}

double microseconds(uint64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1e3; }

Json event(const gpu::DispatchTime& time, uint64_t start_ns, size_t track, size_t submission) {
  Json args{
      {"submission", submission}, {"rows", time.extent.rows}, {"positions", time.extent.positions}};
  if (time.dispatch.traffic) args["bytes"] = gpu::bytes(*time.dispatch.traffic, time.extent);
  return {{"ph", "X"},
          {"name", time.dispatch.kernel},
          {"pid", 1},
          {"tid", track},
          {"ts", microseconds(time.begin_ns - start_ns)},
          {"dur", microseconds(time.end_ns - time.begin_ns)},
          {"args", std::move(args)}};
}

uint64_t earliest(std::span<const Track> tracks) {
  uint64_t start_ns = UINT64_MAX;
  for (const Track& track : tracks) {
    for (const SubmissionTimes& submission : track.submissions) {
      for (const gpu::DispatchTime& time : submission) start_ns = std::min(start_ns, time.begin_ns);
    }
  }
  return start_ns;
}

}  // namespace

Profile profile(std::span<const SubmissionTimes> submissions) {
  Profile sum;
  std::map<std::string_view, KernelProfile> kernels;
  for (const SubmissionTimes& times : submissions) {
    for (const gpu::DispatchTime& time : times) {
      const std::string_view name = time.dispatch.kernel;
      add(kernels.try_emplace(name, KernelProfile{std::string(name), 0, 0, 0}).first->second, time);
    }
    sum.gap_ns += gaps(times);
  }
  for (auto& [name, kernel] : kernels) {
    sum.calls += kernel.calls;
    sum.time_ns += kernel.time_ns;
    sum.kernels.push_back(std::move(kernel));
  }
  std::stable_sort(
      sum.kernels.begin(), sum.kernels.end(),
      [](const KernelProfile& a, const KernelProfile& b) { return a.time_ns > b.time_ns; });
  return sum;
}

std::optional<double> gigabytes_per_second(const KernelProfile& kernel) {
  if (!kernel.bytes || kernel.time_ns == 0) return std::nullopt;
  return static_cast<double>(*kernel.bytes) / static_cast<double>(kernel.time_ns);
}

Json trace(std::span<const Track> tracks) {
  const uint64_t start_ns = earliest(tracks);
  Json events = Json::array();
  for (size_t i = 0; i < tracks.size(); ++i) {
    events.push_back({{"ph", "M"},
                      {"name", "thread_name"},
                      {"pid", 1},
                      {"tid", i},
                      {"args", {{"name", tracks[i].name}}}});
    for (size_t s = 0; s < tracks[i].submissions.size(); ++s) {
      for (const gpu::DispatchTime& time : tracks[i].submissions[s]) {
        events.push_back(event(time, start_ns, i, s));
      }
    }
  }
  return {{"traceEvents", std::move(events)}, {"displayTimeUnit", "ns"}};
}

}  // namespace tandem::engine
