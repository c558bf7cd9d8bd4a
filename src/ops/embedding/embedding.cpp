// Route and recording of the embedding gather.
#include "ops/embedding/embedding.h"

#include "base/error.h"

namespace tandem::ops {
namespace {

// A row of the table's planes and the output, as far as COLUMNS of it; the part that holds none of
// the tokens reads nothing, which is not known here.
gpu::Traffic traffic(const Embedding& op) {
  gpu::Traffic traffic{.per_row = op.columns * sizeof(float)};
  for (const spec::PlaneLayout& plane : spec::planes(op.table.type, op.columns)) {
    traffic.per_row += plane.bytes_per_row;
  }
  return traffic;
}

}  // namespace

Route embedding_route(const Embedding& op, const MatrixPart& part) {
  return {"embedding",
          {{"TYPE", double(op.table.type)},
           {"FIRST_ROW", double(part.first_row)},
           {"ROWS", double(part.rows)},
           {"TABLE_COLUMNS", double(op.table.columns)},
           {"COLUMNS", double(op.columns)},
           {"SCALE", op.scale}},
          {1, 1, 0},
          traffic(op)};
}

Result<void> record(gpu::CommandList& commands, const Embedding& op) {
  const std::vector<spec::PlaneLayout> planes = spec::planes(op.table.type, op.table.columns);
  if (planes.empty() || op.table.columns % 4 != 0 || op.columns % 4 != 0 ||
      op.columns > op.table.columns) {
    return fail(ErrorCode::internal, "embedding: no kernel for {} columns of a {} table of {}",
                op.columns, spec::name(op.table.type), op.table.columns);
  }
  TRY(gpu::check_indexable(uint64_t{op.max_rows} * op.columns));
  TRY(check_size("embedding", "y", op.y, uint64_t{op.max_rows} * op.columns * 4));
  for (const MatrixPart& part : op.table.parts) {
    TRY(gpu::check_indexable(uint64_t{part.rows} * op.table.columns));
    TRY(check_size("embedding", "table", part.values, part.rows * planes[0].bytes_per_row));
    if (planes.size() > 1) {
      TRY(check_size("embedding", "scales", part.scales, part.rows * planes[1].bytes_per_row));
    }
    TRY(dispatch(commands, embedding_route(op, part),
                 {gpu::uniform(op.step), gpu::read(part.values), gpu::read(part.bound_scales()),
                  gpu::read(op.timeline), gpu::read_write(op.y)}));
  }
  return {};
}
}  // namespace tandem::ops
