// Cuts rows into parts and records the one or two stages.
#include "ops/top_k/top_k.h"

#include <algorithm>

#include "base/error.h"

namespace tandem::ops {
namespace {

constexpr uint32_t part_columns = 2048;
constexpr uint32_t most_k = 64;  // INVOCATIONS in top_k.wgsl

uint32_t div_up(uint32_t a, uint32_t b) { return (a + b - 1) / b; }

// Of one row: no more than leave the second stage `part_columns` candidates.
uint32_t parts(const TopK& op) {
  return std::min(part_columns / op.k, div_up(op.columns, part_columns));
}

// One of the two planes of the partials, values and then indices.
uint64_t plane_bytes(const TopK& op) {
  if (parts(op) == 1) return 0;
  const uint64_t elements = uint64_t{op.max_rows} * parts(op) * op.k;
  return (elements + aligned_floats - 1) / aligned_floats * aligned_floats * sizeof(float);
}

// The k largest of each part of `part` columns.
Route stage(uint32_t columns, uint32_t part, uint32_t k, bool from_partials) {
  return {"top_k",
          {{"COLUMNS", double(columns)},
           {"PART", double(part)},
           {"K", double(k)},
           {"FROM_PARTIALS", from_partials ? 1.0 : 0.0}},
          {.groups = div_up(columns, part), .rows_per_group = 1},
          gpu::Traffic{.per_row = columns * (from_partials ? 2 : 1) * sizeof(float) +
                                  uint64_t{div_up(columns, part)} * k * 2 * sizeof(float)}};
}

Result<void> check(const TopK& op) {
  if (op.k == 0 || op.k > most_k || op.k > op.columns) {
    return fail(ErrorCode::unsupported, "top_k: k must be 1 to {}, not {}",
                std::min(op.columns, most_k), op.k);
  }
  const uint64_t elements = uint64_t{op.max_rows} * op.columns;
  const uint64_t chosen = uint64_t{op.max_rows} * op.k;
  TRY(gpu::check_indexable(elements));
  TRY(check_size("top_k", "x", op.x, elements * sizeof(float)));
  TRY(check_size("top_k", "partials", op.partials, top_k_partials_bytes(op)));
  TRY(check_size("top_k", "values", op.values, chosen * sizeof(float)));
  return check_size("top_k", "indices", op.indices, chosen * sizeof(uint32_t));
}

}  // namespace

uint64_t top_k_partials_bytes(const TopK& op) { return 2 * plane_bytes(op); }

std::vector<Route> top_k_routes(const TopK& op) {
  const uint32_t count = parts(op);
  if (count == 1) return {stage(op.columns, op.columns, op.k, false)};
  const uint32_t part = div_up(op.columns, count);
  const uint32_t candidates = div_up(op.columns, part) * op.k;
  return {stage(op.columns, part, op.k, false), stage(candidates, candidates, op.k, true)};
}

Result<void> record(gpu::CommandList& commands, const TopK& op) {
  TRY(check(op));
  const std::vector<Route> routes = top_k_routes(op);
  if (routes.size() == 1) {
    return dispatch(commands, routes[0],
                    {gpu::uniform(op.step), gpu::read(op.x), gpu::read(op.x),
                     gpu::read_write(op.values), gpu::read_write(op.indices)});
  }
  const gpu::View values = op.partials.part(0, plane_bytes(op));
  const gpu::View indices = op.partials.part(plane_bytes(op), plane_bytes(op));
  TRY(dispatch(commands, routes[0],
               {gpu::uniform(op.step), gpu::read(op.x), gpu::read(op.x), gpu::read_write(values),
                gpu::read_write(indices)}));
  return dispatch(commands, routes[1],
                  {gpu::uniform(op.step), gpu::read(values), gpu::read(indices),
                   gpu::read_write(op.values), gpu::read_write(op.indices)});
}

}  // namespace tandem::ops
