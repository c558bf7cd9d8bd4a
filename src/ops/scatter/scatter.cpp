// Records the fill and the scatter.
#include "ops/scatter/scatter.h"

#include "base/error.h"

namespace tandem::ops {
namespace {

constexpr uint32_t fill_columns = 4096;  // TILE in scatter_fill.wgsl
constexpr uint32_t scatter_values = 64;  // INVOCATIONS in scatter.wgsl

uint32_t div_up(uint32_t a, uint32_t b) { return (a + b - 1) / b; }

Result<void> check(const Scatter& op) {
  if (op.count == 0 || op.columns == 0) {
    return fail(ErrorCode::unsupported, "scatter: {} values into {} columns: there must be some",
                op.count, op.columns);
  }
  const uint64_t values = uint64_t{op.max_rows} * op.count;
  const uint64_t elements = uint64_t{op.max_rows} * op.columns;
  TRY(gpu::check_indexable(values));
  TRY(gpu::check_indexable(elements));
  TRY(check_size("scatter", "values", op.values, values * sizeof(float)));
  TRY(check_size("scatter", "index", op.index, values * sizeof(uint32_t)));
  return check_size("scatter", "y", op.y, elements * sizeof(float));
}

}  // namespace

std::vector<Route> scatter_routes(const Scatter& op) {
  const gpu::Constant count = {"COUNT", double(op.count)};
  const gpu::Constant columns = {"COLUMNS", double(op.columns)};
  return {
      {"scatter_fill",
       {count, columns, {"BELOW", op.fill ? 0.0 : 1.0}, {"FILL", op.fill.value_or(0)}},
       {.groups = div_up(op.columns, fill_columns), .rows_per_group = 1}},
      {"scatter",
       {count, columns, {"UNIQUE", op.unique ? 1.0 : 0.0}},
       {.groups = div_up(op.count, scatter_values), .rows_per_group = 1}},
  };
}

Result<void> record(gpu::CommandList& commands, const Scatter& op) {
  TRY(check(op));
  const std::vector<Route> routes = scatter_routes(op);
  TRY(dispatch(commands, routes[0],
               {gpu::uniform(op.step), gpu::read(op.values), gpu::read_write(op.y)}));
  return dispatch(
      commands, routes[1],
      {gpu::uniform(op.step), gpu::read(op.values), gpu::read(op.index), gpu::read_write(op.y)});
}

}  // namespace tandem::ops
