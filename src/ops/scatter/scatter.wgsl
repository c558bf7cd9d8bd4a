// Second stage of the scatter: y[row][index[row][i]] = values[row][i]; of equal indices the last one
// counts.
// Shapes: values and index [rows][COUNT], y [rows][COLUMNS]. One workgroup writes 64 values of one
// row. UNIQUE: no index of a row comes twice; otherwise a value looks for its index behind it.
// Limits: any; indices from COLUMNS on are ignored.

//#include step.wgsl

override COUNT: u32;
override COLUMNS: u32;
override UNIQUE: bool;

const INVOCATIONS = 64u;

override TILES = (COUNT + INVOCATIONS - 1u) / INVOCATIONS;

@group(0) @binding(0) var<uniform> step: Step;
@group(0) @binding(1) var<storage, read> values: array<f32>;
@group(0) @binding(2) var<storage, read> index: array<u32>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(INVOCATIONS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) invocation: u32) {
  let workgroup = group.x + group.y * groups.x;
  let row = workgroup / TILES;
  let i = workgroup % TILES * INVOCATIONS + invocation;
  if (row >= step.rows || i >= COUNT) {
    return;
  }
  let column = index[row * COUNT + i];
  if (column >= COLUMNS) {
    return;
  }
  if (!UNIQUE) {
    for (var later = i + 1u; later < COUNT; later++) {
      if (index[row * COUNT + later] == column) {
        return;
      }
    }
  }
  y[row * COLUMNS + column] = values[row * COUNT + i];
}
