// y[row][c] = x[row][FIRST + c] for all live rows, or y[0] from one row (slice.h).
// Shapes: x [rows][X_STRIDE], y [rows][COLUMNS] or [1][COLUMNS]. One workgroup copies 256 columns of
// one row, whatever its format. Y_IN_LANES: y is in lane order (op.h), FIRST == 0 and X_STRIDE == COLUMNS.
// Limits: any.

//#include step.wgsl
//#include lane_order.wgsl

override X_STRIDE: u32;
override FIRST: u32;
override COLUMNS: u32;
override ROWS: u32;
override Y_IN_LANES: bool;

// ROWS
const all_rows = 0u;

const INVOCATIONS = 256u;

override TILES = (COLUMNS + INVOCATIONS - 1u) / INVOCATIONS;

@group(0) @binding(0) var<uniform> step: Step;
@group(0) @binding(1) var<storage, read> x: array<u32>;
@group(0) @binding(2) var<storage, read_write> y: array<u32>;

@compute @workgroup_size(INVOCATIONS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) invocation: u32) {
  let index = group.x + group.y * groups.x;
  let row = index / TILES;
  let column = index % TILES * INVOCATIONS + invocation;
  let rows = min(step.rows, select(1u, step.rows, ROWS == all_rows));
  if (row >= rows || column >= COLUMNS) {
    return;
  }
  let source = select(step.rows - 1u, row, ROWS == all_rows);
  let in_lanes = 4u * lane_order(column / 4u, COLUMNS) + column % 4u;
  y[row * COLUMNS + select(column, in_lanes, Y_IN_LANES)] = x[source * X_STRIDE + FIRST + column];
}
