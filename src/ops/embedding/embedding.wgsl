// Embedding gather (embedding.h): y[row][c] = SCALE * table[token][c] for c < COLUMNS, where token =
// timeline[step.position + row].
//   weights, scales  planes of the part of the table that begins at row FIRST_ROW and has ROWS rows
//                    of TABLE_COLUMNS (spec/layout.h); f16, f32: scales is not used
//   y [rows][COLUMNS]
// One workgroup gathers one row, if the part owns its token; a token that no part owns leaves y as
// it is. Limits: COLUMNS % 4 == 0; quantized: TABLE_COLUMNS % 32 == 0.

//#include step.wgsl
//#include weight_quads.wgsl

override TYPE: u32;
override FIRST_ROW: u32;
override ROWS: u32;
override TABLE_COLUMNS: u32;
override COLUMNS: u32;
override SCALE: f32;

@group(0) @binding(0) var<uniform> step: Step;
@group(0) @binding(1) var<storage, read> weights: array<u32>;
@group(0) @binding(2) var<storage, read> scales: array<u32>;
@group(0) @binding(3) var<storage, read> timeline: array<u32>;
@group(0) @binding(4) var<storage, read_write> y: array<vec4<f32>>;

const workgroup_size = 256u;

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
    let index = (token - FIRST_ROW) * (TABLE_COLUMNS / 4u) + quad;
    y[row * (COLUMNS / 4u) + quad] = SCALE * quad_weights(index);
  }
}
