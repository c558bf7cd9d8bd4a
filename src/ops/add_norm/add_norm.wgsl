// h[row] = (h[row] + x[row] / sqrt(mean(x[row]^2) + EPSILON) * weight) * scalar, in place, then
// with NEXT y[row] = h[row] / sqrt(mean(h[row]^2) + EPSILON) * next_weight.
// Shapes: x, h and y [rows][COLUMNS], weights [COLUMNS], scalar [1]. One workgroup computes one row.
// Limits: any COLUMNS; without SCALED any view may stand in for scalar, without NEXT for next_weight.

//#include step.wgsl

override COLUMNS: u32;
override EPSILON: f32;
override SCALED: bool;
override NEXT: bool;

const INVOCATIONS = 256u;

@group(0) @binding(0) var<uniform> step: Step;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read> weight: array<f32>;
@group(0) @binding(3) var<storage, read> scalar: array<f32>;
@group(0) @binding(4) var<storage, read_write> h: array<f32>;
@group(0) @binding(5) var<storage, read> next_weight: array<f32>;
@group(0) @binding(6) var<storage, read_write> y: array<f32>;

var<workgroup> sums: array<f32, INVOCATIONS>;

// 1 / sqrt(mean + EPSILON), where the mean over the row is that of all invocations' `sum`.
fn norm_scale(sum: f32, invocation: u32) -> f32 {
  sums[invocation] = sum;
  workgroupBarrier();
  for (var half = INVOCATIONS / 2u; half > 0u; half /= 2u) {
    if (invocation < half) {
      sums[invocation] += sums[invocation + half];
    }
    workgroupBarrier();
  }
  return inverseSqrt(sums[0] / f32(COLUMNS) + EPSILON);
}

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
  let scale = norm_scale(sum, invocation);

  var factor = 1.0;
  if (SCALED) {
    factor = scalar[0];
  }
  sum = 0.0;
  for (var c = invocation; c < COLUMNS; c += INVOCATIONS) {
    let updated = (h[base + c] + x[base + c] * scale * weight[c]) * factor;
    h[base + c] = updated;
    sum += updated * updated;
  }
  if (!NEXT) {
    return;
  }
  // All have read sums[0] before any of them writes its next sum.
  workgroupBarrier();
  let next_scale = norm_scale(sum, invocation);

  for (var c = invocation; c < COLUMNS; c += INVOCATIONS) {
    y[base + c] = h[base + c] * next_scale * next_weight[c];
  }
}
