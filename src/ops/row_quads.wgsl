// Quads of four columns of rows in any format (RowFormat in op.h), for kernels that include this,
// lane_order.wgsl and int8_place.wgsl: they declare
//   override COLUMNS and X_FORMAT; x: array<vec4<u32>>, rows of COLUMNS words.

// X_FORMAT
const x_lanes = 1u;
const x_int8 = 2u;

// Quad number `quad` of the row that begins at x[row].
fn x_quad(row: u32, quad: u32) -> vec4<f32> {
  if (X_FORMAT != x_int8) {
    let place = select(quad, lane_order(quad, COLUMNS), X_FORMAT == x_lanes);
    return bitcast<vec4<f32>>(x[row + place]);
  }
  let place = int8_place(quad, COLUMNS);
  let word = vec4<u32>(x[row + place / 4u][place % 4u]);
  let scale = int8_scale_place(quad / 8u, COLUMNS);
  let d = bitcast<f32>(x[row + scale / 4u][scale % 4u]);
  let q = vec4<i32>(word << vec4<u32>(24u, 16u, 8u, 0u)) >> vec4<u32>(24u);
  return d * vec4<f32>(q);
}
