// How lanes end the products of four weight rows each with M rows of x, for kernels that include
// this, step.wgsl, gelu.wgsl and epilogue.wgsl: they declare
//   override EPILOGUE, M, ROWS, LANES, WORKGROUP, Y_STRIDE and Y_OFFSET; step and y: array<f32>.
// M * WORKGROUP * 16 bytes of workgroup memory.

override SUMS = M * WORKGROUP;

// The lanes' sums of their four weight rows, [M][WORKGROUP].
var<workgroup> sums: array<vec4<f32>, SUMS>;

// What a lane has of the products of its four weight rows with each row of x.
struct Sums {
  row0: vec4<f32>,
  row1: vec4<f32>,
  row2: vec4<f32>,
  row3: vec4<f32>,
}

// Adds the lanes up by a tree, whose order does not depend on M, and writes the outputs of the
// workgroup's weight rows, from `first_row` on.
fn write_outputs(of_x: Sums, first_row: u32, local: u32) {
  let lane = local % LANES;
  sums[local] = of_x.row0;
  if (M > 1u) {
    sums[WORKGROUP + local] = of_x.row1;
  }
  if (M > 2u) {
    sums[2u * WORKGROUP + local] = of_x.row2;
  }
  if (M > 3u) {
    sums[3u * WORKGROUP + local] = of_x.row3;
  }
  // Four sums become one in each turn.
  for (var left = LANES; left > 1u; left /= 4u) {
    let distance = max(left / 4u, 1u);
    workgroupBarrier();
    if (lane < distance) {
      for (var m = 0u; m < M; m++) {
        let i = m * WORKGROUP + local;
        var sum = sums[i] + sums[i + distance];
        if (left > 2u) {
          sum += sums[i + 2u * distance] + sums[i + 3u * distance];
        }
        sums[i] = sum;
      }
    }
  }
  workgroupBarrier();

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
    let four = sums[m * WORKGROUP + row / 4u * LANES];
    let v = four[row % 4u];
    let to = m * Y_STRIDE + Y_OFFSET + output;
    if (EPILOGUE == gelu_pair) {
      y[to] = gelu(v) * four[row % 4u + 1u];
    } else {
      y[to] = finish(v, to);
    }
  }
}
