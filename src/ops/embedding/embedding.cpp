// Route and recording of the embedding gather.
#include "ops/embedding/embedding.h"

#include "base/error.h"

namespace tandem::ops {

Route embedding_route(const Embedding& op, const MatrixPart& part) {
  return {"embedding",
          {{"TYPE", double(op.table.type)},
           {"FIRST_ROW", double(part.first_row)},
           {"ROWS", double(part.rows)},
           {"TABLE_COLUMNS", double(op.table.columns)},
           {"COLUMNS", double(op.columns)},
           {"SCALE", op.scale}},
          {1, 1, 0}};
}

Result<void> record(gpu::CommandList& commands, const Embedding& op) {
  const std::vector<spec::PlaneLayout> planes = spec::planes(op.table.type, op.table.columns);
  if (planes.empty() || op.table.columns % 4 != 0 || op.columns % 4 != 0 ||
      op.columns > op.table.columns) {
    return fail(ErrorCode::internal, "embedding: no kernel for {} columns of a {} table of {}",
                op.columns, spec::name(op.table.type), op.table.columns);
  }
  TRY(gpu::check_indexable(uint64_t{op.max_rows} * op.table.columns));
  TRY(check_size("embedding", "y", op.y, uint64_t{op.max_rows} * op.table.columns * 4));
  for (const MatrixPart& part : op.table.parts) {
    TRY(gpu::check_indexable(uint64_t{part.rows} * op.table.columns));
    TRY(check_size("embedding", "table", part.values, part.rows * planes[0].bytes_per_row));
    if (planes.size() > 1) {
      TRY(check_size("embedding", "scales", part.scales, part.rows * planes[1].bytes_per_row));
    }
    TRY(dispatch(commands, embedding_route(op, part),
                 {gpu::uniform(op.step), gpu::read(part.values),
                  gpu::read(part.scales ? part.scales : part.values), gpu::read(op.timeline),
                  gpu::read_write(op.y)}));
  }
  return {};
}
}  // namespace tandem::ops
