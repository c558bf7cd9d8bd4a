// How the outputs of two neighbouring weight rows are written, for kernels that include this,
// step.wgsl, gelu.wgsl and epilogue.wgsl: they declare
//   override EPILOGUE, ROWS, Y_STRIDE and Y_OFFSET; step; y: array<f32>.

// Those of weight rows `row`, which is even, and row + 1 with a row of x, as far as both are there.
fn write_pair(x_row: u32, row: u32, v: vec2<f32>) {
  if (x_row >= step.rows || row >= ROWS) {
    return;
  }
  var to = x_row * Y_STRIDE + Y_OFFSET;
  if (EPILOGUE == gelu_pair) {
    y[to + row / 2u] = gelu(v.x) * v.y;
    return;
  }
  to += row;
  y[to] = finish(v.x, to);
  if (row + 1u < ROWS) {
    y[to + 1u] = finish(v.y, to + 1u);
  }
}
