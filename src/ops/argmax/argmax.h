// Argmax of each row of logits, in two stages if the row is long; the lowest index wins ties.
#pragma once

#include "ops/op.h"

namespace tandem::ops {

struct Argmax {
  uint32_t columns = 0;
  gpu::View step;
  gpu::View logits;    // [max_rows][columns], finite
  gpu::View partials;  // scratch of argmax_partials_bytes
  gpu::View index;     // u32 [max_rows]
  uint32_t max_rows = 0;
};

uint64_t argmax_partials_bytes(uint32_t columns, uint32_t max_rows);
std::vector<Route> argmax_routes(const Argmax& op);
Result<void> record(gpu::CommandList& commands, const Argmax& op);

// index: [logits.size() / columns]. Where logits are gathered from a longer row, `tokens` says the
// index of each.
void argmax_reference(uint32_t columns, std::span<const float> logits, std::span<uint32_t> index,
                      std::span<const uint32_t> tokens = {});

}  // namespace tandem::ops
