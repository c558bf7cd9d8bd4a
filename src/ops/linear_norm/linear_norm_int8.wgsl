// A residual step and the matrix product of what it yields as int8, for one row (linear_norm.h):
//   h' = (h + b / sqrt(mean(b^2) + EPSILON) * weight) * scalar
//   x = h' / sqrt(mean(h'^2) + EPSILON) * next_weight, in units of int8 (op.h)
//   y = the product with x as linear_int8.wgsl has it
// Each workgroup makes x for itself in workgroup memory, while its first weights are on their way, and
// writes its share of h'.
//   weights, scales  planes of [ROWS, COLUMNS] (spec/layout.h), TYPE q4_0 or q8_0
//   stream  h [COLUMNS], and from element BRANCH on b [COLUMNS]; next_h [COLUMNS]
//   weight and next_weight [COLUMNS]; scalar [1]; y as linear_int8.wgsl's, EPILOGUE none or gelu_pair
// Limits: COLUMNS % 32 == 0, COLUMNS <= 8192, BRANCH % 4 == 0; LANES, AHEAD and Y_INT8 as
// linear_int8.wgsl; without SCALED any view may stand in for scalar. 16 KiB of workgroup memory.

//#include step.wgsl
//#include dot_of_bytes.wgsl
//#include gelu.wgsl
//#include row_sum.wgsl
//#include residual_row.wgsl
//#include residual_share.wgsl
//#include residual_int8.wgsl
//#include lane_sums.wgsl
//#include row_outputs.wgsl
//#include int8_units.wgsl
//#include int8_place.wgsl
//#include int8_sums.wgsl
//#include int8_outputs.wgsl

override TYPE: u32;
override EPILOGUE: u32;
override ROWS: u32;
override COLUMNS: u32;
override LANES: u32;
override AHEAD: u32;
override WORDS: u32;
override Y_STRIDE: u32;
override Y_INT8: bool;
override EPSILON: f32;
override SCALED: bool;
override BRANCH: u32;

const Y_OFFSET = 0u;
const gelu_pair = 1u;  // EPILOGUE

@group(0) @binding(0) var<uniform> step: Step;
@group(0) @binding(1) var<storage, read> weights: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> scales: array<u32>;
@group(0) @binding(3) var<storage, read> stream: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read> weight: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read> scalar: array<f32>;
@group(0) @binding(6) var<storage, read> next_weight: array<vec4<f32>>;
@group(0) @binding(7) var<storage, read_write> next_h: array<vec4<f32>>;
@group(0) @binding(8) var<storage, read_write> y: array<u32>;

override most_units = max(UNITS, WORKGROUP / 8u);

var<private> x_factor: f32;

//#if dp4a
fn dot4(a: u32, b: u32) -> i32 {
  return dot4I8Packed(a, b);
}
//#else
fn dot4(a: u32, b: u32) -> i32 {
  return dot_of_bytes(a, b);
}
//#end

fn x_words(at: u32) -> vec4<u32> {
  return row_quad(at);
}
fn x_word(at: u32, i: u32) -> u32 {
  return row_words[4u * at + i];
}
fn x_scale(row: u32, unit: u32) -> vec2<u32> {
  return int8_scale(unit, x_factor);
}

fn await_x(local: u32) {
  clear_units(UNITS, local, WORKGROUP);
  x_factor = make_int8(own_residual(local), local);
}

fn finish(v: f32, to: u32) -> f32 {
  return v;
}

fn write(row: u32, column: u32, value: f32) {
  y[row + column] = bitcast<u32>(value);
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>,
        @builtin(num_workgroups) workgroups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let index = workgroup.x + workgroup.y * workgroups.x;
  let first_row = index * ROWS_PER_GROUP;
  if (first_row >= ROWS || step.rows == 0u) {
    return;
  }
  group = index;
  let rows = lane_rows(first_row, local);
  // After it no invocation reads the units of x, so that those of y may take their place.
  add_lanes(lane_products(rows, vec4<u32>(), local % LANES, local), local);
  if (Y_INT8) {
    write_int8(first_row, local);
  } else {
    write_outputs(first_row, local);
  }
}
