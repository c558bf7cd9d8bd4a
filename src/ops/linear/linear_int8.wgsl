// Matrix product of rows of int8 with few rows (linear.h): as linear_units.wgsl, but what a unit of
// 32 columns adds is (sum of weight q, an integer) * its scale * d.
//   weights, scales  planes of [ROWS, COLUMNS] (spec/layout.h), TYPE q4_0 or q8_0
//   x [rows][COLUMNS] words, RowFormat::int8 (op.h); times and y [rows][Y_STRIDE], from element
//   Y_OFFSET on. Y_INT8: rows of y are RowFormat::int8 too, EPILOGUE gelu_pair; a workgroup then
//   has whole units of outputs, and an invocation at most a quad of them.
// Limits: as linear_row.wgsl, COLUMNS % 32 == 0; Y_INT8: Y_STRIDE % 32 == 0, Y_OFFSET % 32 == 0,
// WORKGROUP >= 16 LANES, M <= 2 LANES.

//#include step.wgsl
//#include gelu.wgsl
//#include epilogue.wgsl
//#include lane_sums.wgsl
//#include row_outputs.wgsl
//#include int8_units.wgsl
//#include int8_place.wgsl

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
override Y_INT8: bool;
override SOFTCAP: f32;

@group(0) @binding(0) var<uniform> step: Step;
@group(0) @binding(1) var<storage, read> weights: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> scales: array<u32>;
@group(0) @binding(3) var<storage, read> x: array<vec4<u32>>;
@group(0) @binding(4) var<storage, read> times: array<f32>;
@group(0) @binding(5) var<storage, read_write> y: array<u32>;

// TYPE
const q4_0 = 0u;

const most_units = 32u;

override UNITS = COLUMNS / 32u;

// The weights of a unit of four rows as they are stored, of q4_0 in `low` alone, and their scales.
struct Ahead {
  low: array<vec4<u32>, 4>,
  high: array<vec4<u32>, 4>,
  scale: vec4<u32>,
}

fn read_ahead(rows: vec4<u32>, wanted: u32) -> Ahead {
  let at = rows * UNITS + min(wanted, UNITS - 1u);
  let pair = at / 2u;
  var ahead: Ahead;
  if (TYPE == q4_0) {
    ahead.low = array(weights[at.x], weights[at.y], weights[at.z], weights[at.w]);
  } else {
    let b = 2u * at;
    ahead.low = array(weights[b.x], weights[b.y], weights[b.z], weights[b.w]);
    ahead.high =
        array(weights[b.x + 1u], weights[b.y + 1u], weights[b.z + 1u], weights[b.w + 1u]);
  }
  ahead.scale = vec4<u32>(scales[pair.x], scales[pair.y], scales[pair.z], scales[pair.w]);
  return ahead;
}

fn low_half(word: vec4<u32>) -> vec4<f32> {
  return vec4<f32>(unpack2x16float(word.x).x, unpack2x16float(word.y).x, unpack2x16float(word.z).x,
                   unpack2x16float(word.w).x);
}

//#if dp4a
fn dot4(a: u32, b: u32) -> i32 {
  return dot4I8Packed(a, b);
}
//#else
fn signed_bytes(word: u32) -> vec4<i32> {
  return vec4<i32>(vec4<u32>(word) << vec4<u32>(24u, 16u, 8u, 0u)) >> vec4<u32>(24u);
}
fn dot4(a: u32, b: u32) -> i32 {
  let products = signed_bytes(a) * signed_bytes(b);
  return (products.x + products.y) + (products.z + products.w);
}
//#end

// Of 16 columns.
fn dot16(a: vec4<u32>, b: vec4<u32>, before: i32) -> i32 {
  return (dot4(a.x, b.x) + dot4(a.y, b.y)) + (dot4(a.z, b.z) + dot4(a.w, b.w)) + before;
}

// Four weight rows times a unit of a row of x that begins at `row`.
fn product(ahead: Ahead, row: u32, unit: u32) -> vec4<f32> {
  let a = x[row + unit];
  let b = x[row + UNITS + unit];
  let scales_of_two = x[row + 2u * UNITS + unit / 2u];
  let scale = select(scales_of_two.xy, scales_of_two.zw, (unit & 1u) != 0u);
  // Nibbles are the weights plus 8.
  let before = select(0, -8 * bitcast<i32>(scale.y), TYPE == q4_0);
  let q = vec4<i32>(dot16(ahead.high[0], b, dot16(ahead.low[0], a, before)),
                    dot16(ahead.high[1], b, dot16(ahead.low[1], a, before)),
                    dot16(ahead.high[2], b, dot16(ahead.low[2], a, before)),
                    dot16(ahead.high[3], b, dot16(ahead.low[3], a, before)));
  return vec4<f32>(q) * bitcast<f32>(scale.x);
}

fn add(before: Sums, stored: Ahead, rows: vec4<u32>, wanted: u32, x_rows: vec4<u32>) -> Sums {
  let unit = min(wanted, UNITS - 1u);
  let block = rows * UNITS + unit;
  var scale = low_half(stored.scale >> ((block & vec4<u32>(1u)) * 16u));
  if (UNITS % (LANES * AHEAD) != 0u) {
    scale = select(vec4<f32>(), scale, wanted < UNITS);
  }
  var ahead = stored;
  if (TYPE == q4_0) {
    let nibbles = vec4<u32>(0x0f0f0f0fu);
    ahead.low = array(stored.low[0] & nibbles, stored.low[1] & nibbles, stored.low[2] & nibbles,
                      stored.low[3] & nibbles);
    let four = vec4<u32>(4u);
    ahead.high = array((stored.low[0] >> four) & nibbles, (stored.low[1] >> four) & nibbles,
                       (stored.low[2] >> four) & nibbles, (stored.low[3] >> four) & nibbles);
  }
  var sum = before;
  sum.row0 = fma(scale, product(ahead, x_rows.x, unit), sum.row0);
  if (M > 1u) {
    sum.row1 = fma(scale, product(ahead, x_rows.y, unit), sum.row1);
  }
  if (M > 2u) {
    sum.row2 = fma(scale, product(ahead, x_rows.z, unit), sum.row2);
  }
  if (M > 3u) {
    sum.row3 = fma(scale, product(ahead, x_rows.w, unit), sum.row3);
  }
  return sum;
}

fn write(to: u32, value: f32) {
  y[to] = bitcast<u32>(value);
}

// The outputs gelu(gate) up of the weight rows from `first_row` on as int8.
fn write_int8(first_row: u32, local: u32) {
  // Quads of outputs, row of x by row.
  let quads = WORKGROUP / LANES / 2u;
  let m = local / quads;
  let quad = local % quads;
  let unit = local / 8u;
  let output = first_row / 2u + 4u * quad;
  let is_live = m < min(M, step.rows) && output < ROWS / 2u;
  var values = vec4<f32>();
  clear_units(WORKGROUP / 8u, local, WORKGROUP);
  workgroupBarrier();
  if (is_live) {
    let a = four_sums(m, 8u * quad);
    let b = four_sums(m, 8u * quad + 4u);
    values = vec4<f32>(gelu(a.x) * a.y, gelu(a.z) * a.w, gelu(b.x) * b.y, gelu(b.z) * b.w);
    note_quad(unit, values);
  }
  workgroupBarrier();
  let row = m * Y_STRIDE;
  let column = Y_OFFSET + output;
  if (is_live) {
    y[row + int8_place(column / 4u, Y_STRIDE)] = int8_word(unit, values);
  }
  workgroupBarrier();
  if (is_live && quad % 8u == 0u) {
    let scale = int8_scale(unit);
    let to = row + int8_scale_place(column / 32u, Y_STRIDE);
    y[to] = scale.x;
    y[to + 1u] = scale.y;
  }
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
  if (Y_INT8) {
    write_int8(first_row, local);
  } else {
    write_outputs(first_row, local);
  }
}
