// How a workgroup writes the outputs of gelu_pair as int8 (op.h), for kernels that include this,
// step.wgsl, gelu.wgsl, lane_sums.wgsl, int8_units.wgsl and int8_place.wgsl: they declare
//   override M, ROWS, LANES, WORKGROUP, Y_STRIDE and Y_OFFSET; step; y: array<u32>.
// A workgroup has whole units of outputs, and an invocation at most a quad of them.
// Limits: Y_STRIDE % 32 == 0, Y_OFFSET % 32 == 0, WORKGROUP >= 16 LANES, M <= 2 LANES.

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
    let scale = int8_scale(unit, 1.0);
    let to = row + int8_scale_place(column / 32u, Y_STRIDE);
    y[to] = scale.x;
    y[to + 1u] = scale.y;
  }
}
