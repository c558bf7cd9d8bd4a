// Per-layer inputs (per_layer_input.h):
//   y[l][row][i] = (rms_norm(CONTEXT_SCALE * context[row][l])[i] * weight[i] + table[row][l][i])
//                  * 2^-0.5
//   context [rows][CONTEXT_STRIDE], table [rows][TABLE_STRIDE], each with LAYERS slices of WIDTH;
//   weight [WIDTH]; y: layers LAYER_STRIDE apart, in each [rows][WIDTH]
// One workgroup computes one slice: one layer of one row. The mean is summed in f32.

//#include step.wgsl

override LAYERS: u32;
override WIDTH: u32;
override CONTEXT_STRIDE: u32;
override TABLE_STRIDE: u32;
override LAYER_STRIDE: u32;
override CONTEXT_SCALE: f32;
override EPSILON: f32;

@group(0) @binding(0) var<uniform> step: Step;
@group(0) @binding(1) var<storage, read> context: array<f32>;
@group(0) @binding(2) var<storage, read> table: array<f32>;
@group(0) @binding(3) var<storage, read> weight: array<f32>;
@group(0) @binding(4) var<storage, read_write> y: array<f32>;

const workgroup_size = 64u;

var<workgroup> sums: array<f32, workgroup_size>;

@compute @workgroup_size(workgroup_size)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>,
        @builtin(num_workgroups) workgroups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let index = workgroup.x + workgroup.y * workgroups.x;
  let layer = index % LAYERS;
  let row = index / LAYERS;
  if (row >= step.rows) {
    return;
  }
  let from_context = row * CONTEXT_STRIDE + layer * WIDTH;
  let from_table = row * TABLE_STRIDE + layer * WIDTH;
  let to = layer * LAYER_STRIDE + row * WIDTH;

  var sum = 0.0;
  for (var i = local; i < WIDTH; i += workgroup_size) {
    let v = CONTEXT_SCALE * context[from_context + i];
    sum = fma(v, v, sum);
  }
  sums[local] = sum;
  for (var distance = workgroup_size / 2u; distance > 0u; distance /= 2u) {
    workgroupBarrier();
    if (local < distance) {
      sums[local] = sums[local] + sums[local + distance];
    }
  }
  workgroupBarrier();
  let factor = CONTEXT_SCALE * inverseSqrt(sums[0] / f32(WIDTH) + EPSILON);

  for (var i = local; i < WIDTH; i += workgroup_size) {
    let normed = context[from_context + i] * factor * weight[i];
    y[to + i] = (normed + table[from_table + i]) * 0.70710678;
  }
}
