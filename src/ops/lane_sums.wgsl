// How lanes add up the products of four weight rows each with M rows of x, for kernels that include
// this and step.wgsl: they declare
//   override M, ROWS, COLUMNS, LANES and WORKGROUP; step.
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

// The weight rows of an invocation's lane, of those of the workgroup from `first_row` on. Beyond the
// last row, the last.
fn lane_rows(first_row: u32, local: u32) -> vec4<u32> {
  let first = first_row + local / LANES * 4u;
  return min(vec4<u32>(first) + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(ROWS - 1u));
}

// The quads at which rows of x begin; those that are not live repeat the last one.
fn x_begins() -> vec4<u32> {
  return min(vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(step.rows - 1u)) * (COLUMNS / 4u);
}

// Adds the lanes up by a tree, whose order does not depend on M.
fn add_lanes(of_x: Sums, local: u32) {
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
}

// The sums of four weight rows, of which `row` is the first of the workgroup's.
fn four_sums(m: u32, row: u32) -> vec4<f32> {
  return sums[m * WORKGROUP + row / 4u * LANES];
}
