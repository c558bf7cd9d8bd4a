// The products of four weight rows with up to four rows of x that are f32, for kernels that include
// this, lane_sums.wgsl, weight_pieces.wgsl and lane_order.wgsl: they declare
//   override M and what weight_pieces.wgsl asks for;
//   fn x_quad(at: u32) -> vec4<f32>, a quad of rows of x, with X_IN_LANES in lane order (op.h);
//   fn await_x(local: u32), called by all invocations together before x is first read.
// A lane reads AHEAD turns of weights before it uses the first, and adds the scale times the products
// of each. Nothing of this order depends on M.

fn second_quad(row: u32, quad: u32) -> vec4<f32> {
  if (COLUMNS % 8u != 0u && quad >= COLUMNS / 4u) {
    return vec4<f32>();
  }
  return x_quad(row + quad);
}

fn add_piece(before: Sums, w: Piece, quads: vec2<u32>, x_rows: vec4<u32>) -> Sums {
  var sum = before;
  sum.row0 = piece_product(w, x_quad(x_rows.x + quads.x), second_quad(x_rows.x, quads.y), sum.row0);
  if (M > 1u) {
    sum.row1 = piece_product(w, x_quad(x_rows.y + quads.x), second_quad(x_rows.y, quads.y), sum.row1);
  }
  if (M > 2u) {
    sum.row2 = piece_product(w, x_quad(x_rows.z + quads.x), second_quad(x_rows.z, quads.y), sum.row2);
  }
  if (M > 3u) {
    sum.row3 = piece_product(w, x_quad(x_rows.w + quads.x), second_quad(x_rows.w, quads.y), sum.row3);
  }
  return sum;
}

fn add(before: Sums, ahead: Ahead, rows: vec4<u32>, wanted: u32, x_rows: vec4<u32>) -> Sums {
  let scale = turn_scale(ahead, rows, wanted);
  var sum = Sums();
  if (WORDS == 4u) {
    sum = add_piece(sum, nibble_piece(ahead.a), piece_quads(wanted, 0u), x_rows);
    sum = add_piece(sum, nibble_piece(ahead.b), piece_quads(wanted, 1u), x_rows);
    sum = add_piece(sum, nibble_piece(ahead.c), piece_quads(wanted, 2u), x_rows);
    sum = add_piece(sum, nibble_piece(ahead.d), piece_quads(wanted, 3u), x_rows);
  } else {
    sum = add_piece(sum, piece_weights(ahead, rows, wanted), piece_quads(wanted, 0u), x_rows);
  }
  return Sums(fma(scale, sum.row0, before.row0), fma(scale, sum.row1, before.row1),
              fma(scale, sum.row2, before.row2), fma(scale, sum.row3, before.row3));
}

// What `lane` has of them; rows of x begin at `x_rows`.
fn lane_products(rows: vec4<u32>, x_rows: vec4<u32>, lane: u32, local: u32) -> Sums {
  var of_x = Sums();
  for (var turn = 0u; turn < TURNS; turn += LANES * AHEAD) {
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
  return of_x;
}
