// The timestamp queries of timed submissions.
#include <algorithm>
#include <cstring>

#include "gpu/native.h"

namespace tandem::gpu {
namespace {

// The most queries that WebGPU grants a set; a pass takes two.
constexpr size_t most_queries = 4096;
constexpr size_t passes_per_set = most_queries / 2;

uint32_t queries_in_set(size_t passes, size_t set) {
  return static_cast<uint32_t>(2 * std::min(passes - set * passes_per_set, passes_per_set));
}

}  // namespace

Timestamps::Timestamps(WGPUDevice device, std::vector<DispatchTime> dispatches, GpuBuffer results)
    : dispatches_(std::move(dispatches)), results_(std::move(results)) {
  for (size_t set = 0; set * passes_per_set < dispatches_.size(); ++set) {
    WGPUQuerySetDescriptor descriptor = WGPU_QUERY_SET_DESCRIPTOR_INIT;
    descriptor.type = WGPUQueryType_Timestamp;
    descriptor.count = queries_in_set(dispatches_.size(), set);
    sets_.emplace_back(wgpuDeviceCreateQuerySet(device, &descriptor));
  }
}

WGPUPassTimestampWrites Timestamps::writes(size_t pass) const {
  const auto query = static_cast<uint32_t>(2 * (pass % passes_per_set));
  WGPUPassTimestampWrites writes = WGPU_PASS_TIMESTAMP_WRITES_INIT;
  writes.querySet = sets_[pass / passes_per_set].get();
  writes.beginningOfPassWriteIndex = query;
  writes.endOfPassWriteIndex = query + 1;
  return writes;
}

void Timestamps::resolve(WGPUCommandEncoder encoder, WGPUBuffer target) const {
  if (sets_.empty()) return;
  for (size_t set = 0; set < sets_.size(); ++set) {
    wgpuCommandEncoderResolveQuerySet(encoder, sets_[set].get(), 0,
                                      queries_in_set(dispatches_.size(), set),
                                      results_.buffer.get(), set * most_queries * sizeof(uint64_t));
  }
  wgpuCommandEncoderCopyBufferToBuffer(encoder, results_.buffer.get(), 0, target, 0, bytes());
}

std::vector<DispatchTime> Timestamps::times(const std::byte* resolved, double unit_ns) const {
  const auto nanoseconds = [&](size_t query) {
    uint64_t units;
    std::memcpy(&units, resolved + query * sizeof(units), sizeof(units));
    // A double holds 104 days of nanoseconds exactly.
    return unit_ns == 1 ? units : static_cast<uint64_t>(static_cast<double>(units) * unit_ns);
  };
  std::vector<DispatchTime> times = dispatches_;
  for (size_t i = 0; i < times.size(); ++i) {
    times[i].begin_ns = nanoseconds(2 * i);
    times[i].end_ns = nanoseconds(2 * i + 1);
  }
  return times;
}

Result<Timestamps> Device::State::make_timestamps(std::vector<DispatchTime> dispatches) {
  if (!info.timestamps) {
    return fail(ErrorCode::unsupported,
                "a timed submission on \"{}\", which has no timestamps or was opened without them",
                info.name);
  }
  if (dispatches.empty()) {
    return fail(ErrorCode::invalid_argument, "a timed submission without a dispatch");
  }
  TRY_ASSIGN(GpuBuffer results,
             create_buffer(Timestamps::bytes_of(dispatches.size()),
                           WGPUBufferUsage_QueryResolve | WGPUBufferUsage_CopySrc, "timestamps"));
  return Timestamps(device.get(), std::move(dispatches), std::move(results));
}

}  // namespace tandem::gpu
