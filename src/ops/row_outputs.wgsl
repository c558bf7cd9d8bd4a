// How a workgroup writes the outputs of its weight rows, for kernels that include this, step.wgsl,
// gelu.wgsl, epilogue.wgsl and lane_sums.wgsl: they declare
//   override EPILOGUE, M, ROWS, LANES, WORKGROUP, Y_STRIDE and Y_OFFSET; step; and
//   fn write(row: u32, column: u32, value: f32), which writes y[row + column].

// Those of the weight rows from `first_row` on, after add_lanes.
fn write_outputs(first_row: u32, local: u32) {
  let rows_per_group = 4u * WORKGROUP / LANES;
  let rows_per_output = select(1u, 2u, EPILOGUE == gelu_pair);
  let outputs = rows_per_group / rows_per_output;
  for (var i = local; i < outputs * M; i += WORKGROUP) {
    let m = i / outputs;
    let output = first_row / rows_per_output + i % outputs;
    if (m >= step.rows || output >= ROWS / rows_per_output) {
      continue;
    }
    let row = i % outputs * rows_per_output;
    let four = four_sums(m, row);
    let v = four[row % 4u];
    let y_row = m * Y_STRIDE;
    let column = Y_OFFSET + output;
    if (EPILOGUE == gelu_pair) {
      write(y_row, column, gelu(v) * four[row % 4u + 1u]);
    } else {
      write(y_row, column, finish(v, y_row + column));
    }
  }
}
