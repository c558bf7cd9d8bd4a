// Matrix product for few rows, with its epilogue (linear.h): M = 1 is the route `one`, M = 2 to 4
// the route `few`.
//   weights, scales  planes of [ROWS, COLUMNS] (spec/layout.h); f16, f32: scales is not used
//   x [rows][COLUMNS], X_IN_LANES in lane order (op.h), times and y [rows][Y_STRIDE], from element
//   Y_OFFSET on, with Y_IN_LANES in lane order
// A lane multiplies four weight rows at once, so that what it reads of x serves all four; LANES of
// them take the pieces of eight columns of these rows in turn, each summing in f32, and a tree in
// workgroup memory adds the lanes up. They read AHEAD pieces before they use the first. One
// workgroup computes
// 4 * WORKGROUP / LANES weight rows for all rows of x. Nothing of this order depends on M or on the
// live rows, so that a row has the same bits in both routes.
// Limits: LANES and WORKGROUP are powers of two, LANES <= WORKGROUP <= 256; AHEAD <= 4;
// COLUMNS % 4 == 0, f16: % 8, q4_0 and q8_0: % 32; gelu_pair: ROWS is even. M * WORKGROUP * 16
// bytes of workgroup memory.

//#include step.wgsl
//#include gelu.wgsl
//#include epilogue.wgsl
//#include lane_sums.wgsl
//#include row_outputs.wgsl
//#include weight_pieces.wgsl
//#include lane_order.wgsl

override TYPE: u32;
override EPILOGUE: u32;
override M: u32;
override ROWS: u32;
override COLUMNS: u32;
override LANES: u32;
override AHEAD: u32;
override WORKGROUP: u32;
override Y_STRIDE: u32;
override Y_OFFSET: u32;
override Y_IN_LANES: bool;
override SOFTCAP: f32;
override X_IN_LANES: bool;

@group(0) @binding(0) var<uniform> step: Step;
@group(0) @binding(1) var<storage, read> weights: array<u32>;
@group(0) @binding(2) var<storage, read> scales: array<u32>;
@group(0) @binding(3) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read> times: array<f32>;
@group(0) @binding(5) var<storage, read_write> y: array<f32>;

fn second_quad(row: u32, quad: u32) -> vec4<f32> {
  if (COLUMNS % 8u != 0u && quad >= COLUMNS / 4u) {
    return vec4<f32>();
  }
  return x[row + quad];
}

fn product(w: Piece, row: u32, quads: vec2<u32>) -> vec4<f32> {
  return piece_product(w, x[row + quads.x], second_quad(row, quads.y));
}

fn add(before: Sums, ahead: Ahead, rows: vec4<u32>, piece: u32, x_rows: vec4<u32>) -> Sums {
  let w = piece_weights(ahead, rows, piece);
  let scale = piece_scale(ahead, rows, piece);
  let quads = piece_quads(piece);
  var sum = before;
  sum.row0 = fma(scale, product(w, x_rows.x, quads), sum.row0);
  if (M > 1u) {
    sum.row1 = fma(scale, product(w, x_rows.y, quads), sum.row1);
  }
  if (M > 2u) {
    sum.row2 = fma(scale, product(w, x_rows.z, quads), sum.row2);
  }
  if (M > 3u) {
    sum.row3 = fma(scale, product(w, x_rows.w, quads), sum.row3);
  }
  return sum;
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
  let lane = local % LANES;
  let rows = min(vec4<u32>(first_row + local / LANES * 4u) + vec4<u32>(0u, 1u, 2u, 3u),
                 vec4<u32>(ROWS - 1u));
  // Where the rows of x begin; those that are not live repeat the last one.
  let x_rows = min(vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(step.rows - 1u)) * (COLUMNS / 4u);

  var of_x = Sums();
  for (var turn = 0u; turn < PIECES; turn += LANES * AHEAD) {
    let first = turn + lane;
    let ahead0 = read_ahead(rows, first);
    var ahead1: Ahead;
    var ahead2: Ahead;
    var ahead3: Ahead;
    if (AHEAD > 1u) {
      ahead1 = read_ahead(rows, first + LANES);
    }
    if (AHEAD > 2u) {
      ahead2 = read_ahead(rows, first + 2u * LANES);
    }
    if (AHEAD > 3u) {
      ahead3 = read_ahead(rows, first + 3u * LANES);
    }
    of_x = add(of_x, ahead0, rows, first, x_rows);
    if (AHEAD > 1u) {
      of_x = add(of_x, ahead1, rows, first + LANES, x_rows);
    }
    if (AHEAD > 2u) {
      of_x = add(of_x, ahead2, rows, first + 2u * LANES, x_rows);
    }
    if (AHEAD > 3u) {
      of_x = add(of_x, ahead3, rows, first + 3u * LANES, x_rows);
    }
  }

  add_lanes(of_x, local);
  write_outputs(first_row, local);
}
