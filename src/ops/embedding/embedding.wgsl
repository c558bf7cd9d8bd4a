// Embedding gather (embedding.h): y[row][c] = SCALE * table[token][c] for c < COLUMNS, where token =
// timeline[step.position + row].
//   weights, scales  planes of the part of the table that begins at row FIRST_ROW and has ROWS rows
//                    of TABLE_COLUMNS (spec/layout.h); f16, f32: scales is not used
//   y [rows][TABLE_COLUMNS]
// One workgroup gathers one row, if the part owns its token; a token that no part owns leaves y as
// it is. Limits: COLUMNS % 4 == 0; quantized: TABLE_COLUMNS % 32 == 0.

override TYPE: u32;
override FIRST_ROW: u32;
override ROWS: u32;
override TABLE_COLUMNS: u32;
override COLUMNS: u32;
override SCALE: f32;

// TYPE
const q4_0 = 0u;
const q8_0 = 1u;
const halves = 2u;

struct Step {
  position: u32,
  rows: u32,
  remaining: u32,
  rounds: u32,
  token: u32,
  stop: u32,
  accepted: u32,
  reserved: u32,
}

@group(0) @binding(0) var<uniform> step: Step;
@group(0) @binding(1) var<storage, read> weights: array<u32>;
@group(0) @binding(2) var<storage, read> scales: array<u32>;
@group(0) @binding(3) var<storage, read> timeline: array<u32>;
@group(0) @binding(4) var<storage, read_write> y: array<vec4<f32>>;

const workgroup_size = 256u;
const bytes = vec4<u32>(0u, 8u, 16u, 24u);

// Columns 4 * quad .. 4 * quad + 3 of a row.
fn row_weights(row: u32, quad: u32) -> vec4<f32> {
  let index = row * (TABLE_COLUMNS / 4u) + quad;
  if (TYPE == halves) {
    return vec4<f32>(unpack2x16float(weights[2u * index]),
                     unpack2x16float(weights[2u * index + 1u]));
  }
  if (TYPE > q8_0) {
    return bitcast<vec4<f32>>(vec4<u32>(weights[4u * index], weights[4u * index + 1u],
                                        weights[4u * index + 2u], weights[4u * index + 3u]));
  }
  let block = index / 8u;
  let scale_pair = unpack2x16float(scales[block / 2u]);
  let scale = select(scale_pair.x, scale_pair.y, (block & 1u) != 0u);
  if (TYPE == q4_0) {
    let word = weights[4u * block + quad % 4u];
    let nibbles = (vec4<u32>(word >> (quad % 8u / 4u * 4u)) >> bytes) & vec4<u32>(15u);
    return scale * (vec4<f32>(nibbles) - vec4<f32>(8.0));
  }
  let word = vec4<u32>(weights[index]);
  return scale * vec4<f32>(vec4<i32>(word << (vec4<u32>(24u) - bytes)) >> vec4<u32>(24u));
}

@compute @workgroup_size(workgroup_size)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>,
        @builtin(num_workgroups) workgroups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let row = workgroup.x + workgroup.y * workgroups.x;
  if (row >= step.rows) {
    return;
  }
  let token = timeline[min(step.position + row, arrayLength(&timeline) - 1u)];
  if (token < FIRST_ROW || token - FIRST_ROW >= ROWS) {
    return;
  }
  for (var quad = local; quad < COLUMNS / 4u; quad += workgroup_size) {
    y[row * (TABLE_COLUMNS / 4u) + quad] = SCALE * row_weights(token - FIRST_ROW, quad);
  }
}
