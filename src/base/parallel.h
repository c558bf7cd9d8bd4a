// Runs a loop on all cores.
#pragma once

#include <cstdint>
#include <functional>

namespace tandem {

// Calls body(begin, end) on disjoint ranges that together cover [0, count), from at most `threads`
// threads (0: one for each core), and returns when all are done. Ranges begin at multiples of
// `granule`.
void parallel_for(uint64_t count, uint64_t granule,
                  const std::function<void(uint64_t, uint64_t)>& body, unsigned threads = 0);

}  // namespace tandem
