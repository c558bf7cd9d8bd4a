// The products of four weight rows with up to four rows of x that are int8, for kernels that include
// this and lane_sums.wgsl: they declare
//   override TYPE (q4_0 or q8_0), M, COLUMNS, UNITS = COLUMNS / 32, LANES, AHEAD and WORDS; weights: array<vec4<u32>> and
//   scales: array<u32>, the planes of a matrix of rows of COLUMNS (spec/layout.h);
//   fn dot4(a: u32, b: u32) -> i32, the product of four signed bytes with four;
//   of rows of x, in RowFormat::int8 (op.h): fn x_words(at: u32) -> vec4<u32>, fn x_word(at: u32,
//   i: u32) -> u32, words of it, and fn x_scale(row: u32, unit: u32) -> vec2<u32>, d and the sum of q;
//   fn await_x(local: u32), called by all invocations together before x is first read.
// LANES invocations take pieces in turn, WORDS words of each of four weight rows at once, 1 or all 4
// of a unit of 32 columns, and read AHEAD of them, with what they take of x, before they use the
// first. What a piece adds is (sum of weight q, an integer) * the unit's scale * d. Nothing of this
// order depends on M.

// TYPE
const q4_0 = 0u;

// Of a row: units, or a word of a unit of q4_0 and what has the same columns of other planes.
override PIECES = UNITS * 4u / WORDS;

// What is read of a piece ahead of its use: of four weight rows, word by word.
struct Ahead {
  low: array<vec4<u32>, 4>,
  high: array<vec4<u32>, 4>,  // of q8_0
  scale: vec4<u32>,
}
// The same of M rows of x.
struct Rows {
  row0: Row,
  row1: Row,
  row2: Row,
  row3: Row,
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

fn read_ahead(rows: vec4<u32>, wanted: u32) -> Ahead {
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
  return ahead;
}

// Of a row of x that begins at `row`.
fn read_row(row: u32, word: u32) -> Row {
  let unit = word / 4u;
  let scale = x_scale(row, unit);
  if (WORDS == 1u) {
    return Row(vec4<u32>(x_word(row + unit, word % 4u)),
               vec4<u32>(x_word(row + UNITS + unit, word % 4u)), scale);
  }
  return Row(x_words(row + unit), x_words(row + UNITS + unit), scale);
}

fn read_rows(x_rows: vec4<u32>, wanted: u32) -> Rows {
  let word = min(wanted, PIECES - 1u) * WORDS;
  var rows: Rows;
  rows.row0 = read_row(x_rows.x, word);
  if (M > 1u) {
    rows.row1 = read_row(x_rows.y, word);
  }
  if (M > 2u) {
    rows.row2 = read_row(x_rows.z, word);
  }
  if (M > 3u) {
    rows.row3 = read_row(x_rows.w, word);
  }
  return rows;
}

fn low_half(word: vec4<u32>) -> vec4<f32> {
  return vec4<f32>(unpack2x16float(word.x).x, unpack2x16float(word.y).x, unpack2x16float(word.z).x,
                   unpack2x16float(word.w).x);
}

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

fn add(before: Sums, stored: Ahead, x_rows: Rows, rows: vec4<u32>, wanted: u32) -> Sums {
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
  sum.row0 = product(ahead, x_rows.row0, is_first, scale, sum.row0);
  if (M > 1u) {
    sum.row1 = product(ahead, x_rows.row1, is_first, scale, sum.row1);
  }
  if (M > 2u) {
    sum.row2 = product(ahead, x_rows.row2, is_first, scale, sum.row2);
  }
  if (M > 3u) {
    sum.row3 = product(ahead, x_rows.row3, is_first, scale, sum.row3);
  }
  return sum;
}

// What `lane` has of them; rows of x begin at `x_rows`.
fn lane_products(rows: vec4<u32>, x_rows: vec4<u32>, lane: u32, local: u32) -> Sums {
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
    if (turn == 0u) {
      await_x(local);
    }
    let x0 = read_rows(x_rows, first);
    var x1: Rows;
    var x2: Rows;
    var x3: Rows;
    if (AHEAD > 1u) {
      x1 = read_rows(x_rows, first + LANES);
    }
    if (AHEAD > 2u) {
      x2 = read_rows(x_rows, first + 2u * LANES);
    }
    if (AHEAD > 3u) {
      x3 = read_rows(x_rows, first + 3u * LANES);
    }
    of_x = add(of_x, ahead0, x0, rows, first);
    if (AHEAD > 1u) {
      of_x = add(of_x, ahead1, x1, rows, first + LANES);
    }
    if (AHEAD > 2u) {
      of_x = add(of_x, ahead2, x2, rows, first + 2u * LANES);
    }
    if (AHEAD > 3u) {
      of_x = add(of_x, ahead3, x3, rows, first + 3u * LANES);
    }
  }
  return of_x;
}
