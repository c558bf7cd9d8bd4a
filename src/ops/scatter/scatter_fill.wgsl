// First stage of the scatter: y[row] = FILL everywhere or, with BELOW, the least of the row's values,
// less 1.
// Shapes: values [rows][COUNT], y [rows][COLUMNS]. One workgroup fills TILE columns of one row.
// Limits: COUNT > 0; values are finite.

//#include step.wgsl

override COUNT: u32;
override COLUMNS: u32;
override BELOW: bool;
override FILL: f32;

const INVOCATIONS = 256u;
const TILE = 4096u;

override TILES = (COLUMNS + TILE - 1u) / TILE;

@group(0) @binding(0) var<uniform> step: Step;
@group(0) @binding(1) var<storage, read> values: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;

var<workgroup> minima: array<f32, INVOCATIONS>;

fn least_value(row: u32, invocation: u32) -> f32 {
  let base = row * COUNT;
  var least = values[base];
  for (var i = invocation; i < COUNT; i += INVOCATIONS) {
    least = min(least, values[base + i]);
  }
  minima[invocation] = least;
  workgroupBarrier();
  for (var half = INVOCATIONS / 2u; half > 0u; half /= 2u) {
    if (invocation < half) {
      minima[invocation] = min(minima[invocation], minima[invocation + half]);
    }
    workgroupBarrier();
  }
  return minima[0];
}

@compute @workgroup_size(INVOCATIONS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) invocation: u32) {
  let index = group.x + group.y * groups.x;
  let row = index / TILES;
  let tile = index % TILES;
  if (row >= step.rows) {
    return;
  }
  var fill = FILL;
  if (BELOW) {
    fill = least_value(row, invocation) - 1.0;
  }
  let end = min(COLUMNS, (tile + 1u) * TILE);
  for (var column = tile * TILE + invocation; column < end; column += INVOCATIONS) {
    y[row * COLUMNS + column] = fill;
  }
}
