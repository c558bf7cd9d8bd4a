// A small product, the residual step and the next norm (linear_add_norm.h): with v = W x[row]
//   ADD: h[row] = (h[row] + v / sqrt(mean(v^2) + EPSILON) * weight) * scalar, in place; else v * scalar
//   y[row] = h[row] / sqrt(mean(h[row]^2) + EPSILON) * next_weight
//   weights, scales  planes of W [HIDDEN, COLUMNS] (spec/layout.h); f16, f32: scales is not used
//   x [rows][COLUMNS]; h and y [rows][HIDDEN]; weight and next_weight [HIDDEN]; scalar [1]
// One workgroup computes one row; invocation i has elements 4i .. 4i + 3 of it.
// Limits: HIDDEN % 4 == 0, HIDDEN <= 1024; COLUMNS % 32 == 0; LANES a power of two up to 256; without
// ADD any view may stand in for weight, without SCALED for scalar. 16 KiB of workgroup memory.

//#include step.wgsl
//#include weight_units.wgsl
//#include row_product.wgsl

override TYPE: u32;
override HIDDEN: u32;
override COLUMNS: u32;
override LANES: u32;
override EPSILON: f32;
override ADD: bool;
override SCALED: bool;

@group(0) @binding(0) var<uniform> step: Step;
@group(0) @binding(1) var<storage, read> weights: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> scales: array<u32>;
@group(0) @binding(3) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read> weight: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read> scalar: array<f32>;
@group(0) @binding(6) var<storage, read_write> h: array<vec4<f32>>;
@group(0) @binding(7) var<storage, read> next_weight: array<vec4<f32>>;
@group(0) @binding(8) var<storage, read_write> y: array<vec4<f32>>;

// 1 / sqrt(mean of squares + EPSILON) of a row of `count` elements, of which each invocation has four
// or zeros.
fn norm_scale(value: vec4<f32>, count: u32, local: u32) -> f32 {
  sums[local] = value * value;
  workgroupBarrier();
  for (var half = invocations / 2u; half > 0u; half /= 2u) {
    if (local < half) {
      sums[local] += sums[local + half];
    }
    workgroupBarrier();
  }
  let sum = (sums[0].x + sums[0].y) + (sums[0].z + sums[0].w);
  // All have read it before any of them writes its next value.
  workgroupBarrier();
  return inverseSqrt(sum / f32(count) + EPSILON);
}

@compute @workgroup_size(invocations)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>,
        @builtin(num_workgroups) workgroups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let row = workgroup.x + workgroup.y * workgroups.x;
  if (row >= step.rows) {
    return;
  }
  multiply(row, 0u, HIDDEN, local);

  let is_live = local < HIDDEN / 4u;
  let at = row * (HIDDEN / 4u) + local;
  var value = product[local];
  if (ADD) {
    let scale = norm_scale(value, HIDDEN, local);
    if (is_live) {
      value = h[at] + value * scale * weight[local];
    }
  }
  if (SCALED) {
    value *= scalar[0];
  }
  let next_scale = norm_scale(value, HIDDEN, local);
  if (is_live) {
    h[at] = value;
    y[at] = value * next_scale * next_weight[local];
  }
}
