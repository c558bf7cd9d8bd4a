// Threads with equal shares of a loop.
#include "base/parallel.h"

#include <algorithm>
#include <system_error>
#include <thread>
#include <vector>

namespace tandem {

void parallel_for(uint64_t count, uint64_t granule,
                  const std::function<void(uint64_t, uint64_t)>& body, unsigned threads) {
  if (count == 0) return;
  if (threads == 0) threads = std::max(1u, std::thread::hardware_concurrency());
  const uint64_t granules = (count + granule - 1) / granule;
  const uint64_t workers = std::min<uint64_t>(threads, granules);
  auto run = [&](uint64_t worker) {
    const uint64_t begin = granules * worker / workers * granule;
    const uint64_t end = std::min(count, granules * (worker + 1) / workers * granule);
    if (begin < end) body(begin, end);
  };
  std::vector<std::thread> pool;
  uint64_t started = 1;
  try {
    for (; started < workers; ++started) pool.emplace_back(run, started);
  } catch (const std::system_error&) {
    // The system gives no more threads; this one does the rest.
  }
  run(0);
  for (uint64_t worker = started; worker < workers; ++worker) run(worker);
  for (std::thread& thread : pool) thread.join();
}

}  // namespace tandem
