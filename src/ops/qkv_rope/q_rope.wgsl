// q = rope(norm(q) * q_norm) * QUERY_SCALE over each head of HEAD_DIM, for layers that own no K/V.
// Shapes: raw and q [rows][HEADS][HEAD_DIM], angles [positions][ROTATED] of (cos, sin).
// One workgroup computes one head of one row; an invocation turns pairs i, i + 1 (elements i, i + 1
// and their partners half a head on). Limits: HEAD_DIM a multiple of 4.

//#include step.wgsl

override HEADS: u32;
override HEAD_DIM: u32;
override ROTATED: u32;
override EPSILON: f32;
override QUERY_SCALE: f32;

const INVOCATIONS = 64u;

@group(0) @binding(0) var<uniform> step: Step;
@group(0) @binding(1) var<storage, read> raw: array<vec2<f32>>;
@group(0) @binding(2) var<storage, read> q_norm: array<vec2<f32>>;
@group(0) @binding(3) var<storage, read> angles: array<vec2<f32>>;
@group(0) @binding(4) var<storage, read_write> q: array<vec2<f32>>;

var<workgroup> sums: array<f32, INVOCATIONS>;

// 1 / sqrt(mean of squares + EPSILON) of the head that begins at raw[base].
fn norm_scale(base: u32, invocation: u32) -> f32 {
  var sum = 0.0;
  for (var i = invocation; i < HEAD_DIM / 2u; i += INVOCATIONS) {
    sum += dot(raw[base + i], raw[base + i]);
  }
  sums[invocation] = sum;
  workgroupBarrier();
  for (var half = INVOCATIONS / 2u; half > 0u; half /= 2u) {
    if (invocation < half) {
      sums[invocation] += sums[invocation + half];
    }
    workgroupBarrier();
  }
  return inverseSqrt(sums[0] / f32(HEAD_DIM) + EPSILON);
}

fn angle(position: u32, pair: u32) -> vec2<f32> {
  if (pair >= ROTATED) {
    return vec2<f32>(1.0, 0.0);
  }
  let row = min(position, arrayLength(&angles) / ROTATED - 1u);
  return angles[row * ROTATED + pair];
}

@compute @workgroup_size(INVOCATIONS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) invocation: u32) {
  let index = group.x + group.y * groups.x;
  let row = index / HEADS;
  if (row >= step.rows) {
    return;
  }
  let base = index * HEAD_DIM / 2u;
  let scale = norm_scale(base, invocation) * QUERY_SCALE;

  let position = step.position + row;
  for (var i = invocation; i < HEAD_DIM / 4u; i += INVOCATIONS) {
    let partner = i + HEAD_DIM / 4u;
    let low = raw[base + i] * scale * q_norm[i];
    let high = raw[base + partner] * scale * q_norm[partner];
    let first = angle(position, 2u * i);
    let second = angle(position, 2u * i + 1u);
    let cosine = vec2<f32>(first.x, second.x);
    let sine = vec2<f32>(first.y, second.y);
    q[base + i] = low * cosine - high * sine;
    q[base + partner] = high * cosine + low * sine;
  }
}
