// y[row][c] = x[row][FIRST + c] for all live rows, or, with LAST_ROW, y[0] from the last live row.
// Shapes: x [rows][X_STRIDE], y [rows][COLUMNS] or [1][COLUMNS]. One workgroup copies 256 columns of
// one row. Limits: any.

struct Step {
  position: u32,
  rows: u32,
  remaining: u32,
  rounds: u32,
  token: u32,
  stop: u32,
  reserved: vec2<u32>,
}

override X_STRIDE: u32;
override FIRST: u32;
override COLUMNS: u32;
override LAST_ROW: bool;

const INVOCATIONS = 256u;

override TILES = (COLUMNS + INVOCATIONS - 1u) / INVOCATIONS;

@group(0) @binding(0) var<uniform> step: Step;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(INVOCATIONS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) invocation: u32) {
  let index = group.x + group.y * groups.x;
  let row = index / TILES;
  let column = index % TILES * INVOCATIONS + invocation;
  let rows = min(step.rows, select(step.rows, 1u, LAST_ROW));
  if (row >= rows || column >= COLUMNS) {
    return;
  }
  let source = select(row, step.rows - 1u, LAST_ROW);
  y[row * COLUMNS + column] = x[source * X_STRIDE + FIRST + column];
}
