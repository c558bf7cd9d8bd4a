// Matrix product for few rows, with its epilogue (linear.h): M = 1 is the route `one`, M = 2 to 4
// the route `few`.
//   weights, scales  planes of [ROWS, COLUMNS] (spec/layout.h); f16, f32: scales is not used
//   x [rows][COLUMNS], X_IN_LANES in lane order (op.h), times and y [rows][Y_STRIDE], from element
//   Y_OFFSET on, with Y_IN_LANES in lane order
// A lane multiplies four weight rows at once, so that what it reads of x serves all four; LANES of
// them take the pieces of eight columns of these rows in turn (weight_pieces.wgsl), or whole units of
// 32 columns, whose scales they read once (WORDS = 4, for q4_0 and X_IN_LANES), each summing in f32,
// and a tree in workgroup memory adds the lanes up. They read AHEAD turns before they use the first.
// One workgroup computes 4 * WORKGROUP / LANES weight rows for all rows of x. Nothing of this order
// depends on M or on the live rows, so that a row has the same bits in both routes.
// Limits: LANES and WORKGROUP are powers of two, LANES <= WORKGROUP <= 256; AHEAD <= 4;
// COLUMNS % 4 == 0, f16: % 8, q4_0, q8_0 and X_IN_LANES: % 32; gelu_pair: ROWS is even.
// M * WORKGROUP * 16 bytes of workgroup memory.

//#include step.wgsl
//#include gelu.wgsl
//#include epilogue.wgsl
//#include lane_sums.wgsl
//#include row_outputs.wgsl
//#include weight_pieces.wgsl
//#include lane_order.wgsl
//#include float_sums.wgsl

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
override Y_IN_LANES: bool;
override SOFTCAP: f32;
override X_IN_LANES: bool;

@group(0) @binding(0) var<uniform> step: Step;
@group(0) @binding(1) var<storage, read> weights: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> scales: array<u32>;
@group(0) @binding(3) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read> times: array<f32>;
@group(0) @binding(5) var<storage, read_write> y: array<f32>;

fn x_quad(at: u32) -> vec4<f32> {
  return x[at];
}
fn await_x(local: u32) {
}

fn write(row: u32, column: u32, value: f32) {
  let place = 4u * lane_order(column / 4u, Y_STRIDE) + column % 4u;
  y[row + select(column, place, Y_IN_LANES)] = value;
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
  write_outputs(first_row, local);
}
