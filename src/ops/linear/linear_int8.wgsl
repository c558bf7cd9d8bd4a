// Matrix product of rows of int8 with few rows (linear.h): as linear_row.wgsl, but a lane takes
// WORDS words of each of four weight rows at once, 1 or all 4 of a unit of 32 columns, and what they
// add is (sum of weight q, an integer) * the unit's scale * d. All that it takes of weights and x is
// read ahead.
//   weights, scales  planes of [ROWS, COLUMNS] (spec/layout.h), TYPE q4_0 or q8_0
//   x [rows][COLUMNS] words, RowFormat::int8 (op.h); times and y [rows][Y_STRIDE], from element
//   Y_OFFSET on. Y_INT8: rows of y are RowFormat::int8 too, EPILOGUE gelu_pair; a workgroup then
//   has whole units of outputs, and an invocation at most a quad of them.
// Limits: as linear_row.wgsl, COLUMNS % 32 == 0; Y_INT8: Y_STRIDE % 32 == 0, Y_OFFSET % 32 == 0,
// WORKGROUP >= 16 LANES, M <= 2 LANES. 256 bytes of workgroup memory more.

//#include step.wgsl
//#include dot_of_bytes.wgsl
//#include gelu.wgsl
//#include epilogue.wgsl
//#include lane_sums.wgsl
//#include row_outputs.wgsl
//#include int8_units.wgsl
//#include int8_place.wgsl
//#include int8_sums.wgsl
//#include int8_outputs.wgsl

override TYPE: u32;
override EPILOGUE: u32;
override M: u32;
override ROWS: u32;
override COLUMNS: u32;
override LANES: u32;
override AHEAD: u32;
override WORDS: u32;
override WORKGROUP: u32;
override Y_STRIDE: u32;
override Y_OFFSET: u32;
override Y_INT8: bool;
override SOFTCAP: f32;

@group(0) @binding(0) var<uniform> step: Step;
@group(0) @binding(1) var<storage, read> weights: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> scales: array<u32>;
@group(0) @binding(3) var<storage, read> x: array<vec4<u32>>;
@group(0) @binding(4) var<storage, read> times: array<f32>;
@group(0) @binding(5) var<storage, read_write> y: array<u32>;

override UNITS = COLUMNS / 32u;

const most_units = 32u;

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
  return x[at];
}
fn x_word(at: u32, i: u32) -> u32 {
  return x[at][i];
}
fn x_scale(row: u32, unit: u32) -> vec2<u32> {
  let two = x[row + 2u * UNITS + unit / 2u];
  return select(two.xy, two.zw, (unit & 1u) != 0u);
}
fn await_x(local: u32) {
}

fn write(row: u32, column: u32, value: f32) {
  y[row + column] = bitcast<u32>(value);
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>,
        @builtin(num_workgroups) workgroups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let rows_per_group = 4u * WORKGROUP / LANES;
  let first_row = (workgroup.x + workgroup.y * workgroups.x) * rows_per_group;
  if (first_row >= ROWS || step.rows == 0u) {
    return;
  }
  let rows = lane_rows(first_row, local);
  add_lanes(lane_products(rows, x_begins(), local % LANES, local), local);
  if (Y_INT8) {
    write_int8(first_row, local);
  } else {
    write_outputs(first_row, local);
  }
}
