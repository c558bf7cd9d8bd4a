// h[row] = (h[row] + x[row] / sqrt(mean(x[row]^2) + EPSILON) * weight) * scalar, in place, then
// with NEXT y[row] = h[row] / sqrt(mean(h[row]^2) + EPSILON) * next_weight.
// Y_FORMAT is the RowFormat of y (op.h).
// Shapes: x, h and y [rows][COLUMNS], weights [COLUMNS], scalar [1]. One workgroup
// computes one row; invocation i keeps quads i, i + 256, ... of it.
// Limits: COLUMNS % 4 == 0, but for y column by column: % 32; COLUMNS <= 8192; without SCALED any view may stand in
// for scalar, without NEXT for next_weight.

//#include step.wgsl
//#include row_sum.wgsl
//#include residual_row.wgsl
//#include residual_int8.wgsl
//#include lane_order.wgsl
//#include int8_units.wgsl
//#include int8_place.wgsl

override COLUMNS: u32;
override EPSILON: f32;
override SCALED: bool;
override NEXT: bool;
override Y_FORMAT: u32;

@group(0) @binding(0) var<uniform> step: Step;
@group(0) @binding(1) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> weight: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> scalar: array<f32>;
@group(0) @binding(4) var<storage, read_write> h: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read> next_weight: array<vec4<f32>>;
@group(0) @binding(6) var<storage, read_write> y: array<vec4<u32>>;

// Y_FORMAT
const lanes = 1u;
const int8 = 2u;

const most_units = 256u;

fn branch_quad(at: u32) -> vec4<f32> {
  return x[at];
}
fn h_quad(at: u32) -> vec4<f32> {
  return h[at];
}

// A vector is written as a whole: of one whose components two invocations write, either may be lost.
fn write_int8(base: u32, factor: f32, local: u32) {
  for (var i = local; i < QUADS / 4u; i += invocations) {
    y[base + i] = row_quad(i);
  }
  for (var pair = local; 2u * pair < UNITS; pair += invocations) {
    let scales = vec4<u32>(int8_scale(2u * pair, factor),
                           int8_scale(min(2u * pair + 1u, UNITS - 1u), factor));
    y[base + QUADS / 4u + pair] = scales;
  }
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
    clear_units(UNITS, local, invocations);
  }
  let residual = residual_row(base, local);
  for (var k = 0u; k < KEPT; k++) {
    let quad = k * invocations + local;
    if (quad < QUADS) {
      h[base + quad] = residual.h[k];
    }
  }
  if (!NEXT) {
    return;
  }
  if (Y_FORMAT == int8) {
    write_int8(base, make_int8(residual, local), local);
    return;
  }
  note_part(residual.square, local);
  let scale = norm_scale(sum_of_parts());
  for (var k = 0u; k < KEPT; k++) {
    let quad = k * invocations + local;
    if (quad < QUADS) {
      let to = base + select(quad, lane_order(quad, COLUMNS), Y_FORMAT == lanes);
      y[to] = bitcast<vec4<u32>>(residual.next[k] * scale);
    }
  }
}
