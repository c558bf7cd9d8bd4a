// Matrix product for few rows with large matrices of q4_0, with its epilogue (linear.h): as
// linear_row.wgsl, but x lies in lane order (op.h), and a lane takes whole units of 32 columns of
// four weight rows, so that it reads their scales once.
//   weights, scales  planes of [ROWS, COLUMNS] (spec/layout.h)
//   x [rows][COLUMNS], times and y [rows][Y_STRIDE], from element Y_OFFSET on, with Y_IN_LANES in
//   lane order
// Limits: as linear_row.wgsl, COLUMNS % 32 == 0.

//#include step.wgsl
//#include gelu.wgsl
//#include epilogue.wgsl
//#include lane_sums.wgsl
//#include row_outputs.wgsl
//#include lane_order.wgsl

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

@group(0) @binding(0) var<uniform> step: Step;
@group(0) @binding(1) var<storage, read> weights: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> scales: array<u32>;
@group(0) @binding(3) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read> times: array<f32>;
@group(0) @binding(5) var<storage, read_write> y: array<f32>;

override UNITS = COLUMNS / 32u;

// What is read of a unit of four rows ahead of its use.
struct Ahead {
  row0: vec4<u32>,
  row1: vec4<u32>,
  row2: vec4<u32>,
  row3: vec4<u32>,
  scale: vec4<u32>,
}

fn read_ahead(rows: vec4<u32>, wanted: u32) -> Ahead {
  let at = rows * UNITS + min(wanted, UNITS - 1u);
  let pair = at / 2u;
  return Ahead(weights[at.x], weights[at.y], weights[at.z], weights[at.w],
               vec4<u32>(scales[pair.x], scales[pair.y], scales[pair.z], scales[pair.w]));
}

// Four bits from bit `at` <= 16 on, less 8, exactly: with the exponent of 2^23 they are 2^23 + 2^at
// n.
fn nibbles(word: vec4<u32>, at: u32) -> vec4<f32> {
  let bits = (word & vec4<u32>(15u << at)) | vec4<u32>(0x4b000000u);
  let unit = 1.0 / f32(1u << at);
  return fma(bitcast<vec4<f32>>(bits), vec4<f32>(unit), vec4<f32>(-8388608.0 * unit - 8.0));
}

fn low_half(word: vec4<u32>) -> vec4<f32> {
  return vec4<f32>(unpack2x16float(word.x).x, unpack2x16float(word.y).x, unpack2x16float(word.z).x,
                   unpack2x16float(word.w).x);
}

fn quad_product(c0: vec4<f32>, c1: vec4<f32>, c2: vec4<f32>, c3: vec4<f32>, v: vec4<f32>,
                before: vec4<f32>) -> vec4<f32> {
  let sum = fma(c1, vec4<f32>(v.y), fma(c0, vec4<f32>(v.x), before));
  return fma(c3, vec4<f32>(v.w), fma(c2, vec4<f32>(v.z), sum));
}

// Columns c0 .. c3 of four weight rows times quad `at` of each row of x.
fn add_quad(before: Sums, c0: vec4<f32>, c1: vec4<f32>, c2: vec4<f32>, c3: vec4<f32>, at: u32,
            x_rows: vec4<u32>) -> Sums {
  var sum = before;
  sum.row0 = quad_product(c0, c1, c2, c3, x[x_rows.x + at], sum.row0);
  if (M > 1u) {
    sum.row1 = quad_product(c0, c1, c2, c3, x[x_rows.y + at], sum.row1);
  }
  if (M > 2u) {
    sum.row2 = quad_product(c0, c1, c2, c3, x[x_rows.z + at], sum.row2);
  }
  if (M > 3u) {
    sum.row3 = quad_product(c0, c1, c2, c3, x[x_rows.w + at], sum.row3);
  }
  return sum;
}

// A word of q4_0 of each row: columns 4k .. 4k + 3 and 16 further on.
fn add_word(before: Sums, word: vec4<u32>, at: u32, x_rows: vec4<u32>) -> Sums {
  let high = word >> vec4<u32>(12u);
  let sum = add_quad(before, nibbles(word, 0u), nibbles(word, 8u), nibbles(word, 16u),
                     nibbles(high, 12u), at, x_rows);
  return add_quad(sum, nibbles(word, 4u), nibbles(word, 12u), nibbles(high, 8u), nibbles(high, 16u),
                  at + 4u * UNITS, x_rows);
}

fn add(before: Sums, ahead: Ahead, rows: vec4<u32>, wanted: u32, x_rows: vec4<u32>) -> Sums {
  let unit = min(wanted, UNITS - 1u);
  let block = rows * UNITS + unit;
  var scale = low_half(ahead.scale >> ((block & vec4<u32>(1u)) * 16u));
  if (UNITS % (LANES * AHEAD) != 0u) {
    scale = select(vec4<f32>(), scale, wanted < UNITS);
  }
  let r0 = ahead.row0;
  let r1 = ahead.row1;
  let r2 = ahead.row2;
  let r3 = ahead.row3;
  var part = Sums();
  part = add_word(part, vec4<u32>(r0.x, r1.x, r2.x, r3.x), unit, x_rows);
  part = add_word(part, vec4<u32>(r0.y, r1.y, r2.y, r3.y), unit + UNITS, x_rows);
  part = add_word(part, vec4<u32>(r0.z, r1.z, r2.z, r3.z), unit + 2u * UNITS, x_rows);
  part = add_word(part, vec4<u32>(r0.w, r1.w, r2.w, r3.w), unit + 3u * UNITS, x_rows);
  return Sums(fma(scale, part.row0, before.row0), fma(scale, part.row1, before.row1),
              fma(scale, part.row2, before.row2), fma(scale, part.row3, before.row3));
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
  for (var turn = 0u; turn < UNITS; turn += LANES * AHEAD) {
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
