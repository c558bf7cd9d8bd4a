// h[row] = (h[row] + x[row] / sqrt(mean(x[row]^2) + EPSILON) * weight) * scalar, in place, then
// with NEXT y[row] = h[row] / sqrt(mean(h[row]^2) + EPSILON) * next_weight.
// Y_FORMAT is the RowFormat of y (op.h). With EARLIER the norm of another branch, times
// earlier_weight, is added too.
// Shapes: x, earlier, h and y [rows][COLUMNS], weights [COLUMNS], scalar [1]. One workgroup
// computes one row; invocation i keeps quads i, i + 256, ... of it.
// Limits: COLUMNS % 4 == 0, but for y column by column: % 32; COLUMNS <= 8192; without SCALED any view may stand in
// for scalar, without
// EARLIER for earlier and its weight, without NEXT for next_weight.

//#include step.wgsl
//#include row_sum.wgsl
//#include lane_order.wgsl
//#include int8_units.wgsl
//#include int8_place.wgsl

override COLUMNS: u32;
override EPSILON: f32;
override SCALED: bool;
override EARLIER: bool;
override NEXT: bool;
override Y_FORMAT: u32;

@group(0) @binding(0) var<uniform> step: Step;
@group(0) @binding(1) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> weight: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> scalar: array<f32>;
@group(0) @binding(4) var<storage, read> earlier: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read> earlier_weight: array<vec4<f32>>;
@group(0) @binding(6) var<storage, read_write> h: array<vec4<f32>>;
@group(0) @binding(7) var<storage, read> next_weight: array<vec4<f32>>;
@group(0) @binding(8) var<storage, read_write> y: array<vec4<u32>>;

// Y_FORMAT
const lanes = 1u;
const int8 = 2u;

const most_kept = 8u;
const most_units = 256u;

override QUADS = COLUMNS / 4u;
override KEPT = (QUADS + invocations - 1u) / invocations;

fn total(squares: vec4<f32>) -> f32 {
  return (squares.x + squares.y) + (squares.z + squares.w);
}

fn norm_scale(sum_of_squares: f32) -> f32 {
  return inverseSqrt(sum_of_squares / f32(COLUMNS) + EPSILON);
}

@compute @workgroup_size(invocations)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let row = group.x + group.y * groups.x;
  if (row >= step.rows) {
    return;
  }
  let base = row * QUADS;
  if (Y_FORMAT == int8) {
    clear_units(COLUMNS / 32u, local, invocations);
  }

  // All is read before the first wait. Zeros beyond the row.
  var values = array<vec4<f32>, most_kept>();
  var before = array<vec4<f32>, most_kept>();
  var branches = array<vec4<f32>, most_kept>();
  var next_weights = array<vec4<f32>, most_kept>();
  var squares = vec4<f32>();
  var earlier_squares = vec4<f32>();
  for (var k = 0u; k < KEPT; k++) {
    let quad = k * invocations + local;
    if (quad < QUADS) {
      let value = x[base + quad];
      values[k] = value * weight[quad];
      before[k] = h[base + quad];
      squares = fma(value, value, squares);
      if (EARLIER) {
        let branch = earlier[base + quad];
        branches[k] = branch * earlier_weight[quad];
        earlier_squares = fma(branch, branch, earlier_squares);
      }
      if (NEXT) {
        next_weights[k] = next_weight[quad];
      }
    }
  }
  var factor = 1.0;
  if (SCALED) {
    factor = scalar[0];
  }
  let totals = row_sums(vec2<f32>(total(squares), total(earlier_squares)), local);
  let scale = norm_scale(totals.x);
  if (EARLIER) {
    let earlier_scale = norm_scale(totals.y);
    for (var k = 0u; k < KEPT; k++) {
      before[k] = fma(branches[k], vec4<f32>(earlier_scale), before[k]);
    }
  }

  squares = vec4<f32>();
  for (var k = 0u; k < KEPT; k++) {
    let quad = k * invocations + local;
    values[k] = fma(values[k], vec4<f32>(scale), before[k]) * factor;
    squares = fma(values[k], values[k], squares);
    if (quad < QUADS) {
      h[base + quad] = values[k];
    }
  }
  if (!NEXT) {
    return;
  }
  let next_scale = norm_scale(row_sum(total(squares), local));
  for (var k = 0u; k < KEPT; k++) {
    let quad = k * invocations + local;
    values[k] = values[k] * next_scale * next_weights[k];
    if (quad < QUADS) {
      if (Y_FORMAT == int8) {
        note_quad(quad / 8u, values[k]);
      } else {
        let to = base + select(quad, lane_order(quad, COLUMNS), Y_FORMAT == lanes);
        y[to] = bitcast<vec4<u32>>(values[k]);
      }
    }
  }
  if (Y_FORMAT != int8) {
    return;
  }
  workgroupBarrier();
  for (var k = 0u; k < KEPT; k++) {
    let quad = k * invocations + local;
    if (quad < QUADS) {
      let place = int8_place(quad, COLUMNS);
      y[base + place / 4u][place % 4u] = int8_word(quad / 8u, values[k]);
    }
  }
  workgroupBarrier();
  for (var unit = local; unit < COLUMNS / 32u; unit += invocations) {
    let scale = int8_scale(unit);
    let place = int8_scale_place(unit, COLUMNS);
    y[base + place / 4u][place % 4u] = scale.x;
    y[base + place / 4u][place % 4u + 1u] = scale.y;
  }
}
