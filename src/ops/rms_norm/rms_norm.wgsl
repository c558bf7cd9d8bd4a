// y[row] = x[row] / sqrt(mean(x[row]^2) + EPSILON) * weight.
// Shapes: x and y [rows][COLUMNS], weight [COLUMNS]. One workgroup computes one row.
// Y_IN_LANES: y in lane order (op.h). Limits: any COLUMNS, then COLUMNS % 32 == 0; without
// WEIGHTED, any view may stand in for weight.

//#include step.wgsl
//#include lane_order.wgsl

override COLUMNS: u32;
override EPSILON: f32;
override WEIGHTED: bool;
override Y_IN_LANES: bool;

const INVOCATIONS = 256u;

@group(0) @binding(0) var<uniform> step: Step;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read> weight: array<f32>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;

var<workgroup> sums: array<f32, INVOCATIONS>;

@compute @workgroup_size(INVOCATIONS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) invocation: u32) {
  let row = group.x + group.y * groups.x;
  if (row >= step.rows) {
    return;
  }
  let base = row * COLUMNS;

  var sum = 0.0;
  for (var c = invocation; c < COLUMNS; c += INVOCATIONS) {
    sum += x[base + c] * x[base + c];
  }
  sums[invocation] = sum;
  workgroupBarrier();
  for (var half = INVOCATIONS / 2u; half > 0u; half /= 2u) {
    if (invocation < half) {
      sums[invocation] += sums[invocation + half];
    }
    workgroupBarrier();
  }
  let scale = inverseSqrt(sums[0] / f32(COLUMNS) + EPSILON);

  for (var c = invocation; c < COLUMNS; c += INVOCATIONS) {
    let normed = x[base + c] * scale;
    let to = base + select(c, 4u * lane_order(c / 4u, COLUMNS) + c % 4u, Y_IN_LANES);
    if (WEIGHTED) {
      y[to] = normed * weight[c];
    } else {
      y[to] = normed;
    }
  }
}
