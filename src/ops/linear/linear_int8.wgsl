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

// TYPE
const q4_0 = 0u;

const most_units = 32u;

override UNITS = COLUMNS / 32u;
// Of a row: units, or a word of a unit of q4_0 and what has the same columns of other planes.
override PIECES = UNITS * 4u / WORDS;

// What is read of a piece ahead of its use: of four weight rows, word by word, and of M rows of x.
struct Ahead {
  low: array<vec4<u32>, 4>,
  high: array<vec4<u32>, 4>,  // of q8_0
  scale: vec4<u32>,
  x0: Row,
  x1: Row,
  x2: Row,
  x3: Row,
}
struct Row {
  low: vec4<u32>,
  high: vec4<u32>,
  scale: vec2<u32>,
}

// Word by word of four rows what begins at `first` in the weights.
fn words(first: vec4<u32>) -> array<vec4<u32>, 4> {
  if (WORDS == 1u) {
    let word = vec4<u32>(
        weights[first.x / 4u][first.x % 4u], weights[first.y / 4u][first.y % 4u],
        weights[first.z / 4u][first.z % 4u], weights[first.w / 4u][first.w % 4u]);
    return array(word, word, word, word);
  }
  let four = transposed(weights[first.x / 4u], weights[first.y / 4u], weights[first.z / 4u],
                        weights[first.w / 4u]);
  return four;
}

fn transposed(a: vec4<u32>, b: vec4<u32>, c: vec4<u32>, d: vec4<u32>) -> array<vec4<u32>, 4> {
  return array(vec4<u32>(a.x, b.x, c.x, d.x), vec4<u32>(a.y, b.y, c.y, d.y),
               vec4<u32>(a.z, b.z, c.z, d.z), vec4<u32>(a.w, b.w, c.w, d.w));
}

// Of a row of x that begins at `row`.
fn read_row(row: u32, word: u32) -> Row {
  let unit = word / 4u;
  let two = x[row + 2u * UNITS + unit / 2u];
  let scale = select(two.xy, two.zw, (unit & 1u) != 0u);
  if (WORDS == 1u) {
    return Row(vec4<u32>(x[row + unit][word % 4u]), vec4<u32>(x[row + UNITS + unit][word % 4u]),
               scale);
  }
  return Row(x[row + unit], x[row + UNITS + unit], scale);
}

fn read_ahead(rows: vec4<u32>, wanted: u32, x_rows: vec4<u32>) -> Ahead {
  let word = min(wanted, PIECES - 1u) * WORDS;
  let unit = word / 4u;
  var ahead: Ahead;
  if (TYPE == q4_0) {
    ahead.low = words(rows * (COLUMNS / 8u) + word);
  } else {
    let first = rows * (COLUMNS / 4u) + unit * 8u + word % 4u;
    ahead.low = words(first);
    ahead.high = words(first + 4u);
  }
  let pair = (rows * UNITS + unit) / 2u;
  ahead.scale = vec4<u32>(scales[pair.x], scales[pair.y], scales[pair.z], scales[pair.w]);
  ahead.x0 = read_row(x_rows.x, word);
  if (M > 1u) {
    ahead.x1 = read_row(x_rows.y, word);
  }
  if (M > 2u) {
    ahead.x2 = read_row(x_rows.z, word);
  }
  if (M > 3u) {
    ahead.x3 = read_row(x_rows.w, word);
  }
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

// Four weight rows times four columns of x, twice.
fn words_product(low: vec4<u32>, high: vec4<u32>, x_low: u32, x_high: u32) -> vec4<i32> {
  return vec4<i32>(dot4(low.x, x_low) + dot4(high.x, x_high),
                   dot4(low.y, x_low) + dot4(high.y, x_high),
                   dot4(low.z, x_low) + dot4(high.z, x_high),
                   dot4(low.w, x_low) + dot4(high.w, x_high));
}

// Four weight rows times a piece of a row of x, of which the first of a unit makes up for nibbles,
// which are the weights plus 8.
fn product(ahead: Ahead, row: Row, is_first: bool, scale: vec4<f32>, before: vec4<f32>) -> vec4<f32> {
  let low = ahead.low;
  let high = ahead.high;
  var q = words_product(low[0], high[0], row.low.x, row.high.x);
  if (WORDS > 1u) {
    q += words_product(low[1], high[1], row.low.y, row.high.y);
    q += words_product(low[2], high[2], row.low.z, row.high.z);
    q += words_product(low[3], high[3], row.low.w, row.high.w);
  }
  if (TYPE == q4_0) {
    q -= vec4<i32>(select(0, 8 * bitcast<i32>(row.scale.y), is_first));
  }
  return fma(scale * bitcast<f32>(row.scale.x), vec4<f32>(q), before);
}

fn add(before: Sums, stored: Ahead, rows: vec4<u32>, wanted: u32) -> Sums {
  let word = min(wanted, PIECES - 1u) * WORDS;
  let block = rows * UNITS + word / 4u;
  var scale = low_half(stored.scale >> ((block & vec4<u32>(1u)) * 16u));
  if (PIECES % (LANES * AHEAD) != 0u) {
    scale = select(vec4<f32>(), scale, wanted < PIECES);
  }
  var ahead = stored;
  if (TYPE == q4_0) {
    let nibbles = vec4<u32>(0x0f0f0f0fu);
    let four = vec4<u32>(4u);
    ahead.low = array(stored.low[0] & nibbles, stored.low[1] & nibbles, stored.low[2] & nibbles,
                      stored.low[3] & nibbles);
    ahead.high = array((stored.low[0] >> four) & nibbles, (stored.low[1] >> four) & nibbles,
                       (stored.low[2] >> four) & nibbles, (stored.low[3] >> four) & nibbles);
  }
  let is_first = word % 4u == 0u;
  var sum = before;
  sum.row0 = product(ahead, ahead.x0, is_first, scale, sum.row0);
  if (M > 1u) {
    sum.row1 = product(ahead, ahead.x1, is_first, scale, sum.row1);
  }
  if (M > 2u) {
    sum.row2 = product(ahead, ahead.x2, is_first, scale, sum.row2);
  }
  if (M > 3u) {
    sum.row3 = product(ahead, ahead.x3, is_first, scale, sum.row3);
  }
  return sum;
}

fn write(row: u32, column: u32, value: f32) {
  y[row + column] = bitcast<u32>(value);
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
  for (var turn = 0u; turn < PIECES; turn += LANES * AHEAD) {
    let first = turn + lane;
    let ahead0 = read_ahead(rows, first, x_rows);
    var ahead1: Ahead;
    var ahead2: Ahead;
    var ahead3: Ahead;
    if (AHEAD > 1u) {
      ahead1 = read_ahead(rows, first + LANES, x_rows);
    }
    if (AHEAD > 2u) {
      ahead2 = read_ahead(rows, first + 2u * LANES, x_rows);
    }
    if (AHEAD > 3u) {
      ahead3 = read_ahead(rows, first + 3u * LANES, x_rows);
    }
    of_x = add(of_x, ahead0, rows, first);
    if (AHEAD > 1u) {
      of_x = add(of_x, ahead1, rows, first + LANES);
    }
    if (AHEAD > 2u) {
      of_x = add(of_x, ahead2, rows, first + 2u * LANES);
    }
    if (AHEAD > 3u) {
      of_x = add(of_x, ahead3, rows, first + 3u * LANES);
    }
  }

  add_lanes(of_x, local);
  if (Y_INT8) {
    write_int8(first_row, local);
  } else {
    write_outputs(first_row, local);
  }
}
