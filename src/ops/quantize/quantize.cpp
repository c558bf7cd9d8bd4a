// Records the step from f32 to int8.
#include "ops/quantize/quantize.h"

#include "base/error.h"

namespace tandem::ops {

Route quantize_route(const Quantize& op) {
  return {"quantize",
          {{"COLUMNS", double(op.columns)}},
          {.groups = 1, .rows_per_group = 1},
          gpu::Traffic{.per_row = op.columns * sizeof(float) + int8_row_bytes(op.columns)}};
}

Result<void> record(gpu::CommandList& commands, const Quantize& op) {
  if (!has_units(op.columns) || op.columns > 16384) {
    return fail(ErrorCode::unsupported,
                "quantize: columns must be a multiple of 32 up to 16384, not {}", op.columns);
  }
  const uint64_t elements = uint64_t{op.max_rows} * op.columns;
  TRY(gpu::check_indexable(elements));
  TRY(check_size("quantize", "x", op.x, elements * sizeof(float)));
  return dispatch(commands, quantize_route(op), {gpu::uniform(op.step), gpu::read_write(op.x)});
}

}  // namespace tandem::ops
