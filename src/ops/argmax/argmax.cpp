// Records the argmax: one stage for a row of one tile, else two.
#include "ops/argmax/argmax.h"

#include "base/error.h"

namespace tandem::ops {
namespace {

constexpr uint32_t tile_columns = 2048;

uint32_t tiles(uint32_t columns) { return (columns + tile_columns - 1) / tile_columns; }

}  // namespace

uint64_t argmax_partials_bytes(uint32_t columns, uint32_t max_rows) {
  return uint64_t{max_rows} * tiles(columns) * 2 * sizeof(uint32_t);
}

std::vector<Route> argmax_routes(const Argmax& op) {
  const uint32_t count = tiles(op.columns);
  std::vector<Route> routes = {
      {"argmax",
       {{"COLUMNS", double(op.columns)}, {"TILE", double(tile_columns)}},
       {.groups = count, .rows_per_group = 1},
       gpu::Traffic{.per_row = op.columns * sizeof(float) + argmax_partials_bytes(op.columns, 1)}},
  };
  if (count == 1) return routes;
  routes.push_back(
      {"argmax_combine",
       {{"TILES", double(count)}},
       {.groups = 1, .rows_per_group = 1},
       gpu::Traffic{.per_row = argmax_partials_bytes(op.columns, 1) + sizeof(uint32_t)}});
  return routes;
}

Result<void> record(gpu::CommandList& commands, const Argmax& op) {
  const uint64_t elements = uint64_t{op.max_rows} * op.columns;
  TRY(gpu::check_indexable(elements));
  TRY(check_size("argmax", "logits", op.logits, elements * sizeof(float)));
  TRY(check_size("argmax", "partials", op.partials,
                 argmax_partials_bytes(op.columns, op.max_rows)));
  TRY(check_size("argmax", "index", op.index, op.max_rows * sizeof(uint32_t)));
  const std::vector<Route> routes = argmax_routes(op);
  TRY(dispatch(commands, routes[0],
               {gpu::uniform(op.step), gpu::read(op.logits), gpu::read_write(op.partials),
                gpu::read_write(op.index)}));
  if (routes.size() == 1) return {};
  return dispatch(commands, routes[1],
                  {gpu::uniform(op.step), gpu::read(op.partials), gpu::read_write(op.index)});
}

}  // namespace tandem::ops
