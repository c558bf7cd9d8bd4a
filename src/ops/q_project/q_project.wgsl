// q = rope(norm(W x[row]) * q_norm) over each head of HEAD_DIM (q_project.h).
//   weights, scales  planes of W [HEADS * HEAD_DIM, COLUMNS] (spec/layout.h); f16, f32: scales is not
//                    used
//   x [rows][COLUMNS], q_norm [HEAD_DIM], angles [positions][ROTATED] of (cos, sin),
//   q [rows][HEADS][HEAD_DIM]
// One workgroup computes one head of one row; invocation i has elements 4i .. 4i + 3 of it for the
// norm, and turns pairs 4i .. 4i + 3 (these elements and their partners half a head on).
// Limits: HEAD_DIM % 8 == 0, HEAD_DIM <= 1024; COLUMNS % 32 == 0; LANES a power of two up to 256.
// 16 KiB of workgroup memory.

//#include step.wgsl
//#include weight_units.wgsl
//#include row_product.wgsl

override TYPE: u32;
override HEADS: u32;
override HEAD_DIM: u32;
override COLUMNS: u32;
override ROTATED: u32;
override LANES: u32;
override EPSILON: f32;

@group(0) @binding(0) var<uniform> step: Step;
@group(0) @binding(1) var<storage, read> weights: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> scales: array<u32>;
@group(0) @binding(3) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read> q_norm: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read> angles: array<vec2<f32>>;
@group(0) @binding(6) var<storage, read_write> q: array<vec4<f32>>;

fn angle(position: u32, pair: u32) -> vec2<f32> {
  if (pair >= ROTATED) {
    return vec2<f32>(1.0, 0.0);
  }
  let row = min(position, arrayLength(&angles) / ROTATED - 1u);
  return angles[row * ROTATED + pair];
}

@compute @workgroup_size(invocations)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>,
        @builtin(num_workgroups) workgroups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let index = workgroup.x + workgroup.y * workgroups.x;
  let row = index / HEADS;
  if (row >= step.rows) {
    return;
  }
  multiply(row, index % HEADS * HEAD_DIM, HEAD_DIM, local);
  let scale = norm_scale(product[local], HEAD_DIM, local);
  if (local >= HEAD_DIM / 8u) {
    return;
  }

  let partner = local + HEAD_DIM / 8u;
  let low = product[local] * scale * q_norm[local];
  let high = product[partner] * scale * q_norm[partner];
  let position = step.position + row;
  let turns = transpose(mat4x2<f32>(angle(position, 4u * local), angle(position, 4u * local + 1u),
                                    angle(position, 4u * local + 2u),
                                    angle(position, 4u * local + 3u)));
  let cosine = turns[0];
  let sine = turns[1];
  let base = index * (HEAD_DIM / 4u);
  q[base + local] = low * cosine - high * sine;
  q[base + partner] = high * cosine + low * sine;
}
