// Matrix product for many rows, with its epilogue (linear.h): the route `many`.
//   weights, scales  planes of [ROWS, COLUMNS] (spec/layout.h); f16, f32: scales is not used
//   x [rows][COLUMNS], times and y [rows][Y_STRIDE], from element Y_OFFSET on
// One workgroup computes a tile of 64 rows of x times 64 weight rows, walking the columns 16 at a
// time with both tiles in workgroup memory. Each invocation sums 4 x 4 products in f32: x rows
// i, i + 16, ..., and two neighbouring pairs of weight rows (gelu_pair needs both of a pair).
// Limits: COLUMNS % 4 == 0; gelu_pair: ROWS is even. 8 KiB of workgroup memory.

//#include step.wgsl
//#include gelu.wgsl
//#include weight_quads.wgsl

override TYPE: u32;
override EPILOGUE: u32;
override ROWS: u32;
override COLUMNS: u32;
override Y_STRIDE: u32;
override Y_OFFSET: u32;
override SOFTCAP: f32;

// EPILOGUE
const gelu_pair = 1u;
const gelu_times = 2u;
const softcap = 3u;

@group(0) @binding(0) var<uniform> step: Step;
@group(0) @binding(1) var<storage, read> weights: array<u32>;
@group(0) @binding(2) var<storage, read> scales: array<u32>;
@group(0) @binding(3) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read> times: array<f32>;
@group(0) @binding(5) var<storage, read_write> y: array<f32>;

const tile = 64u;
const quads = 4u;  // vec4 in a row of a tile

// [tile][quads], each row's vec4 permuted by `place`.
var<workgroup> x_tile: array<vec4<f32>, 256>;
var<workgroup> w_tile: array<vec4<f32>, 256>;

// Every other row lies in the same memory banks; the permutation spreads rows that are read
// together over the banks.
fn place(row: u32, quad: u32) -> u32 {
  return row * quads + (quad ^ ((row / 2u) % quads));
}

// Columns 4 * quad .. 4 * quad + 3 of a row; zeros beyond the matrix.
fn w_quad(row: u32, quad: u32) -> vec4<f32> {
  if (row >= ROWS || 4u * quad >= COLUMNS) {
    return vec4<f32>();
  }
  return quad_weights(row * (COLUMNS / 4u) + quad);
}

fn x_quad(row: u32, quad: u32) -> vec4<f32> {
  if (row >= step.rows || 4u * quad >= COLUMNS) {
    return vec4<f32>();
  }
  return x[row * (COLUMNS / 4u) + quad];
}

// What is not finite stays so, for the host to notice: a clamp would hide it.
fn capped(v: f32) -> f32 {
  if ((bitcast<u32>(v) & 0x7f800000u) == 0x7f800000u) {
    return v;
  }
  return SOFTCAP * tanh(clamp(v / SOFTCAP, -15.0, 15.0));
}

fn finish(v: f32, to: u32) -> f32 {
  if (EPILOGUE == gelu_times) {
    return gelu(v) * times[to];
  }
  if (EPILOGUE == softcap) {
    return capped(v);
  }
  return v;
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>,
        @builtin(num_workgroups) workgroups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let w_tiles = (ROWS + tile - 1u) / tile;
  let index = workgroup.x + workgroup.y * workgroups.x;
  let first_w = index % w_tiles * tile;
  let first_x = index / w_tiles * tile;
  if (first_x >= step.rows) {
    return;
  }
  let load_row = local / 4u;
  let load_quad = local % 4u;
  let x_row = local / 16u;
  let w_row = local % 16u * 2u;

  // In four groups of 16, the rows of x from the tile's first on; dead groups are left out.
  let live = step.rows - first_x;
  var sum0 = vec4<f32>();
  var sum1 = vec4<f32>();
  var sum2 = vec4<f32>();
  var sum3 = vec4<f32>();
  for (var first_quad = 0u; first_quad < COLUMNS / 4u; first_quad += quads) {
    x_tile[place(load_row, load_quad)] = x_quad(first_x + load_row, first_quad + load_quad);
    w_tile[place(load_row, load_quad)] = w_quad(first_w + load_row, first_quad + load_quad);
    workgroupBarrier();
    for (var quad = 0u; quad < quads; quad++) {
      let w = mat4x4<f32>(w_tile[place(w_row, quad)], w_tile[place(w_row + 1u, quad)],
                          w_tile[place(w_row + 32u, quad)], w_tile[place(w_row + 33u, quad)]);
      sum0 += x_tile[place(x_row, quad)] * w;
      if (live > 16u) {
        sum1 += x_tile[place(x_row + 16u, quad)] * w;
      }
      if (live > 32u) {
        sum2 += x_tile[place(x_row + 32u, quad)] * w;
        sum3 += x_tile[place(x_row + 48u, quad)] * w;
      }
    }
    workgroupBarrier();
  }

  let sums = array<vec4<f32>, 4>(sum0, sum1, sum2, sum3);
  for (var i = 0u; i < 8u; i++) {
    let y_row = first_x + x_row + i / 2u * 16u;
    let row = first_w + w_row + i % 2u * 32u;  // and row + 1
    if (y_row >= step.rows || row >= ROWS) {
      continue;
    }
    let v = select(sums[i / 2u].xy, sums[i / 2u].zw, i % 2u == 1u);
    var to = y_row * Y_STRIDE + Y_OFFSET;
    if (EPILOGUE == gelu_pair) {
      y[to + row / 2u] = gelu(v.x) * v.y;
      continue;
    }
    to += row;
    y[to] = finish(v.x, to);
    if (row + 1u < ROWS) {
      y[to + 1u] = finish(v.y, to + 1u);
    }
  }
}
