// The weights of a matrix in pieces of eight columns of four rows at once, for kernels that include
// this and lane_order.wgsl: they declare
//   override TYPE, COLUMNS, LANES, AHEAD, WORDS and X_IN_LANES; weights: array<vec4<u32>> and
//   scales: array<u32>, the planes of a matrix of rows of COLUMNS (spec/layout.h); f16, f32: scales
//   is not used.
// LANES invocations take pieces in turn, AHEAD turns at once; with WORDS = 4, which is for q4_0 and
// X_IN_LANES, the four pieces of a unit of 32 columns in each turn, else WORDS = 1.

// TYPE
const q4_0 = 0u;
const q8_0 = 1u;
const halves = 2u;

override PIECES = (COLUMNS + 7u) / 8u;
override TURNS = PIECES / WORDS;  // that the lanes take of a row

// What is read of four rows ahead of its use: a word of each row, or four (q4_0), two (q8_0) or none
// (they are read when they are used), and the word that has the scale.
struct Ahead {
  a: vec4<u32>,
  b: vec4<u32>,
  c: vec4<u32>,
  d: vec4<u32>,
  scale: vec4<u32>,
}

// A piece: column by column the weights of four rows. Written out, since an array that is indexed
// by a variable may not stay in registers.
alias Piece = array<vec4<f32>, 8>;

// The same word of four rows.
fn words(at: vec4<u32>) -> vec4<u32> {
  return vec4<u32>(weights[at.x / 4u][at.x % 4u], weights[at.y / 4u][at.y % 4u],
                   weights[at.z / 4u][at.z % 4u], weights[at.w / 4u][at.w % 4u]);
}

// Beyond the row, what is last in it.
fn read_ahead(rows: vec4<u32>, wanted: u32) -> Ahead {
  let turn = min(wanted, TURNS - 1u);
  var ahead = Ahead();
  if (WORDS == 4u) {
    let at = rows * TURNS + turn;
    let row0 = weights[at.x];
    let row1 = weights[at.y];
    let row2 = weights[at.z];
    let row3 = weights[at.w];
    ahead.a = vec4<u32>(row0.x, row1.x, row2.x, row3.x);
    ahead.b = vec4<u32>(row0.y, row1.y, row2.y, row3.y);
    ahead.c = vec4<u32>(row0.z, row1.z, row2.z, row3.z);
    ahead.d = vec4<u32>(row0.w, row1.w, row2.w, row3.w);
  } else if (TYPE == q4_0) {
    ahead.a = words(rows * (COLUMNS / 8u) + turn);
  } else if (TYPE == q8_0) {
    let first = rows * (COLUMNS / 4u) + 2u * turn;
    ahead.a = words(first);
    ahead.b = words(first + 1u);
  }
  if (TYPE <= q8_0) {
    let pair = (rows * (COLUMNS / 32u) + turn * WORDS / 4u) / 2u;
    ahead.scale = vec4<u32>(scales[pair.x], scales[pair.y], scales[pair.z], scales[pair.w]);
  }
  return ahead;
}

// Four bits from bit `at` <= 16 on, less 8, exactly: with the exponent of 2^23 they are 2^23 + 2^at
// n.
fn nibbles(word: vec4<u32>, at: u32) -> vec4<f32> {
  let bits = (word & vec4<u32>(15u << at)) | vec4<u32>(0x4b000000u);
  let unit = 1.0 / f32(1u << at);
  return fma(bitcast<vec4<f32>>(bits), vec4<f32>(unit), vec4<f32>(-8388608.0 * unit - 8.0));
}

// A signed byte, of which `at` is the first bit.
fn signed_bytes(word: vec4<u32>, at: u32) -> vec4<f32> {
  return vec4<f32>(bitcast<vec4<i32>>(word << vec4<u32>(24u - at)) >> vec4<u32>(24u));
}

fn low_half(word: vec4<u32>) -> vec4<f32> {
  return vec4<f32>(unpack2x16float(word.x).x, unpack2x16float(word.y).x, unpack2x16float(word.z).x,
                   unpack2x16float(word.w).x);
}

// A piece of q4_0, a word of its block: four columns, and the four 16 columns on.
fn nibble_piece(word: vec4<u32>) -> Piece {
  let high = word >> vec4<u32>(12u);
  return Piece(nibbles(word, 0u), nibbles(word, 8u), nibbles(word, 16u), nibbles(high, 12u),
               nibbles(word, 4u), nibbles(word, 12u), nibbles(high, 8u), nibbles(high, 16u));
}

// With WORDS = 1 the weights of a piece, without their scale. One of f32 may end after four columns;
// the others are zeros of x.
fn piece_weights(ahead: Ahead, rows: vec4<u32>, wanted: u32) -> Piece {
  if (TYPE == q4_0) {
    return nibble_piece(ahead.a);
  }
  if (TYPE == q8_0) {
    let a = ahead.a;
    let b = ahead.b;
    return Piece(signed_bytes(a, 0u), signed_bytes(a, 8u), signed_bytes(a, 16u),
                 signed_bytes(a, 24u), signed_bytes(b, 0u), signed_bytes(b, 8u),
                 signed_bytes(b, 16u), signed_bytes(b, 24u));
  }
  let piece = min(wanted, PIECES - 1u);
  if (TYPE == halves) {
    let first = rows * (COLUMNS / 2u) + 4u * piece;
    let w0 = words(first);
    let w1 = words(first + 1u);
    let w2 = words(first + 2u);
    let w3 = words(first + 3u);
    let high = vec4<u32>(16u);
    return Piece(low_half(w0), low_half(w0 >> high), low_half(w1), low_half(w1 >> high),
                 low_half(w2), low_half(w2 >> high), low_half(w3), low_half(w3 >> high));
  }
  let first = rows * COLUMNS + 8u * piece;
  let second = min(first + 4u, rows * COLUMNS + (COLUMNS - 4u));
  return Piece(bitcast<vec4<f32>>(words(first)), bitcast<vec4<f32>>(words(first + 1u)),
               bitcast<vec4<f32>>(words(first + 2u)), bitcast<vec4<f32>>(words(first + 3u)),
               bitcast<vec4<f32>>(words(second)), bitcast<vec4<f32>>(words(second + 1u)),
               bitcast<vec4<f32>>(words(second + 2u)), bitcast<vec4<f32>>(words(second + 3u)));
}

// Of a turn; zeros beyond the row.
fn turn_scale(ahead: Ahead, rows: vec4<u32>, wanted: u32) -> vec4<f32> {
  var scale = vec4<f32>(1.0);
  if (TYPE <= q8_0) {
    let block = rows * (COLUMNS / 32u) + min(wanted, TURNS - 1u) * WORDS / 4u;
    scale = low_half(ahead.scale >> ((block & vec4<u32>(1u)) * 16u));
  }
  if (TURNS % (LANES * AHEAD) == 0u) {
    return scale;
  }
  return select(vec4<f32>(), scale, wanted < TURNS);
}

// Where the columns of a piece lie in a row of x, which may be in lane order: two quads. Those of
// piece `word` of a unit follow those of the piece before it by as many quads as there are units.
fn piece_quads(wanted: u32, word: u32) -> vec2<u32> {
  if (WORDS == 4u) {
    let quad = min(wanted, TURNS - 1u) + word * TURNS;
    return vec2<u32>(quad, quad + 4u * TURNS);
  }
  let piece = min(wanted, PIECES - 1u);
  var quads = vec2<u32>(2u * piece, 2u * piece + 1u);
  if (TYPE == q4_0) {
    let quad = piece + piece / 4u * 4u;
    quads = vec2<u32>(quad, quad + 4u);
  }
  if (X_IN_LANES) {
    return vec2<u32>(lane_order(quads.x, COLUMNS), lane_order(quads.y, COLUMNS));
  }
  return quads;
}

// Adds the products of four weight rows with the two quads of a piece.
fn piece_product(w: Piece, a: vec4<f32>, b: vec4<f32>, before: vec4<f32>) -> vec4<f32> {
  var sum = fma(w[0], vec4<f32>(a.x), before);
  sum = fma(w[1], vec4<f32>(a.y), sum);
  sum = fma(w[2], vec4<f32>(a.z), sum);
  sum = fma(w[3], vec4<f32>(a.w), sum);
  sum = fma(w[4], vec4<f32>(b.x), sum);
  sum = fma(w[5], vec4<f32>(b.y), sum);
  sum = fma(w[6], vec4<f32>(b.z), sum);
  return fma(w[7], vec4<f32>(b.w), sum);
}
