// Matrix product for many rows, with its epilogue (linear.h): the route `many`.
//   weights, scales  planes of [ROWS, COLUMNS] (spec/layout.h); f16, f32: scales is not used
//   x [rows][COLUMNS], times and y [rows][Y_STRIDE], from element Y_OFFSET on
// One workgroup computes a tile of 64 rows of x times 64 weight rows, walking the columns 32 at a
// time with both tiles in workgroup memory. Each invocation sums 4 x 4 products in f32: x rows
// i, i + 16, ..., and two neighbouring pairs of weight rows (gelu_pair needs both of a pair).
// Limits: COLUMNS % 4 == 0; gelu_pair: ROWS is even. 16 KiB of workgroup memory.

override TYPE: u32;
override EPILOGUE: u32;
override ROWS: u32;
override COLUMNS: u32;
override Y_STRIDE: u32;
override Y_OFFSET: u32;
override SOFTCAP: f32;

// TYPE
const q4_0 = 0u;
const q8_0 = 1u;
const halves = 2u;
// EPILOGUE
const gelu_pair = 1u;
const gelu_times = 2u;
const softcap = 3u;

struct Step {
  position: u32,
  rows: u32,
  remaining: u32,
  rounds: u32,
  token: u32,
  stop: u32,
  reserved: vec2<u32>,
}

@group(0) @binding(0) var<uniform> step: Step;
@group(0) @binding(1) var<storage, read> weights: array<u32>;
@group(0) @binding(2) var<storage, read> scales: array<u32>;
@group(0) @binding(3) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read> times: array<f32>;
@group(0) @binding(5) var<storage, read_write> y: array<f32>;

const tile = 64u;
const tile_columns = 32u;
const quads = 8u;  // vec4 in a row of a tile

// [tile][quads], each row's vec4 permuted by `place`.
var<workgroup> x_tile: array<vec4<f32>, 512>;
var<workgroup> w_tile: array<vec4<f32>, 512>;

// Rows lie 128 bytes apart, in the same memory banks; the permutation spreads rows that are read
// together over the banks.
fn place(row: u32, quad: u32) -> u32 {
  return row * quads + (quad ^ ((row / 2u) % quads));
}

const bytes = vec4<u32>(0u, 8u, 16u, 24u);

// Columns 4 * quad .. 4 * quad + 3 of a unit of 32 columns, scaled; zeros beyond the matrix.
fn unit_weights(row: u32, unit: u32, quad: u32) -> vec4<f32> {
  let column = unit * tile_columns + 4u * quad;
  if (row >= ROWS || column >= COLUMNS) {
    return vec4<f32>();
  }
  if (TYPE > q8_0) {
    let index = row * COLUMNS + column;
    if (TYPE == halves) {
      return vec4<f32>(unpack2x16float(weights[index / 2u]),
                       unpack2x16float(weights[index / 2u + 1u]));
    }
    return bitcast<vec4<f32>>(vec4<u32>(weights[index], weights[index + 1u], weights[index + 2u],
                                        weights[index + 3u]));
  }
  let block = row * (COLUMNS / 32u) + unit;
  let scale_pair = unpack2x16float(scales[block / 2u]);
  let scale = select(scale_pair.x, scale_pair.y, (block & 1u) != 0u);
  if (TYPE == q4_0) {
    let word = weights[4u * block + quad % 4u];
    let nibbles = (vec4<u32>(word >> (quad / 4u * 4u)) >> bytes) & vec4<u32>(15u);
    return scale * (vec4<f32>(nibbles) - vec4<f32>(8.0));
  }
  let word = vec4<u32>(weights[8u * block + quad]);
  return scale * vec4<f32>(vec4<i32>(word << (vec4<u32>(24u) - bytes)) >> vec4<u32>(24u));
}

fn x_quad(row: u32, quad: u32) -> vec4<f32> {
  if (row >= step.rows || 4u * quad >= COLUMNS) {
    return vec4<f32>();
  }
  return x[row * (COLUMNS / 4u) + quad];
}

// Beyond +-8 gelu(v) is v or 0 in f32. The clamp keeps tanh's argument where no implementation
// overflows.
fn gelu(v: f32) -> f32 {
  let c = clamp(v, -8.0, 8.0);
  return 0.5 * v * (1.0 + tanh(0.7978845608 * (c + 0.044715 * c * c * c)));
}

// Writes the outputs of the weight rows w_row and w_row + 1.
fn write(x_row: u32, w_row: u32, v: vec2<f32>) {
  let row = x_row * Y_STRIDE + Y_OFFSET;
  if (EPILOGUE == gelu_pair) {
    if (w_row < ROWS) {
      y[row + w_row / 2u] = gelu(v.x) * v.y;
    }
    return;
  }
  for (var i = 0u; i < 2u; i++) {
    let to = row + w_row + i;
    if (w_row + i >= ROWS) {
      return;
    }
    if (EPILOGUE == gelu_times) {
      y[to] = gelu(v[i]) * times[to];
    } else if (EPILOGUE == softcap) {
      y[to] = SOFTCAP * tanh(clamp(v[i] / SOFTCAP, -15.0, 15.0));
    } else {
      y[to] = v[i];
    }
  }
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

  var sums: array<vec4<f32>, 4>;
  for (var unit = 0u; unit < (COLUMNS + 31u) / 32u; unit++) {
    for (var quad = load_quad; quad < quads; quad += 4u) {
      x_tile[place(load_row, quad)] = x_quad(first_x + load_row, unit * quads + quad);
      w_tile[place(load_row, quad)] = unit_weights(first_w + load_row, unit, quad);
    }
    workgroupBarrier();
    for (var quad = 0u; quad < quads; quad++) {
      let w0 = w_tile[place(w_row, quad)];
      let w1 = w_tile[place(w_row + 1u, quad)];
      let w2 = w_tile[place(w_row + 32u, quad)];
      let w3 = w_tile[place(w_row + 33u, quad)];
      for (var i = 0u; i < 4u; i++) {
        let a = x_tile[place(x_row + 16u * i, quad)];
        sums[i] += vec4<f32>(dot(a, w0), dot(a, w1), dot(a, w2), dot(a, w3));
      }
    }
    workgroupBarrier();
  }

  for (var i = 0u; i < 4u; i++) {
    let to_row = first_x + x_row + 16u * i;
    if (to_row < step.rows) {
      write(to_row, first_w + w_row, sums[i].xy);
      write(to_row, first_w + w_row + 32u, sums[i].zw);
    }
  }
}
