// q = rope(norm(q) * q_norm) * QUERY_SCALE, k = rope(norm(k) * k_norm), v = norm(v), each over its
// head of HEAD_DIM, or v as it is without NORMS_VALUES; k and v go to slot position % SLOTS of the KV
// cache.
// Shapes: qkv [rows][q heads, k heads, v heads][HEAD_DIM] (without v heads where KEY_IS_VALUE: v is
// the raw k), q [rows][HEADS][HEAD_DIM], keys and values [SLOTS][KV_HEADS][HEAD_DIM] as f32 or as
// pairs of f16, angles [positions][ROTATED] of (cos, sin).
// One workgroup computes one head of one row; an invocation turns pairs i, i + 1 (elements i, i + 1
// and their partners half a head on). Limits: HEAD_DIM a multiple of 4.

//#include step.wgsl

override HEADS: u32;
override KV_HEADS: u32;
override HEAD_DIM: u32;
override ROTATED: u32;
override EPSILON: f32;
override QUERY_SCALE: f32;
override KEY_IS_VALUE: bool;
override NORMS_VALUES: bool;
override KV_F16: bool;
override SLOTS: u32;

const INVOCATIONS = 64u;

@group(0) @binding(0) var<uniform> step: Step;
@group(0) @binding(1) var<storage, read> qkv: array<vec2<f32>>;
@group(0) @binding(2) var<storage, read> q_norm: array<vec2<f32>>;
@group(0) @binding(3) var<storage, read> k_norm: array<vec2<f32>>;
@group(0) @binding(4) var<storage, read> angles: array<vec2<f32>>;
@group(0) @binding(5) var<storage, read_write> q: array<vec2<f32>>;
@group(0) @binding(6) var<storage, read_write> keys: array<u32>;
@group(0) @binding(7) var<storage, read_write> values: array<u32>;

var<workgroup> sums: array<f32, INVOCATIONS>;

// 1 / sqrt(mean of squares + EPSILON) of the head that begins at qkv[base].
fn norm_scale(base: u32, invocation: u32) -> f32 {
  var sum = 0.0;
  for (var i = invocation; i < HEAD_DIM / 2u; i += INVOCATIONS) {
    sum += dot(qkv[base + i], qkv[base + i]);
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

fn packed(value: vec2<f32>) -> u32 {
  return pack2x16float(clamp(value, vec2<f32>(-65504.0), vec2<f32>(65504.0)));
}

fn store_key(at: u32, value: vec2<f32>) {
  if (KV_F16) {
    keys[at] = packed(value);
  } else {
    keys[at * 2u] = bitcast<u32>(value.x);
    keys[at * 2u + 1u] = bitcast<u32>(value.y);
  }
}

fn store_value(at: u32, value: vec2<f32>) {
  if (KV_F16) {
    values[at] = packed(value);
  } else {
    values[at * 2u] = bitcast<u32>(value.x);
    values[at * 2u + 1u] = bitcast<u32>(value.y);
  }
}

@compute @workgroup_size(INVOCATIONS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) invocation: u32) {
  let index = group.x + group.y * groups.x;
  let row = index / (HEADS + 2u * KV_HEADS);
  let head = index % (HEADS + 2u * KV_HEADS);
  if (row >= step.rows) {
    return;
  }
  let is_query = head < HEADS;
  let is_value = head >= HEADS + KV_HEADS;
  let source = select(head, head - KV_HEADS, KEY_IS_VALUE && is_value);
  let sources = HEADS + select(2u, 1u, KEY_IS_VALUE) * KV_HEADS;
  let base = (row * sources + source) * HEAD_DIM / 2u;
  var scale = norm_scale(base, invocation);
  if (is_query) {
    scale *= QUERY_SCALE;
  }
  if (is_value && !NORMS_VALUES) {
    scale = 1.0;
  }

  let position = step.position + row;
  let slot = position % SLOTS;
  for (var i = invocation; i < HEAD_DIM / 4u; i += INVOCATIONS) {
    let partner = i + HEAD_DIM / 4u;
    var low = qkv[base + i] * scale;
    var high = qkv[base + partner] * scale;
    if (is_value) {
      let at = (slot * KV_HEADS + head - HEADS - KV_HEADS) * HEAD_DIM / 2u;
      store_value(at + i, low);
      store_value(at + partner, high);
      continue;
    }
    if (is_query) {
      low *= q_norm[i];
      high *= q_norm[partner];
    } else {
      low *= k_norm[i];
      high *= k_norm[partner];
    }
    let first = angle(position, 2u * i);
    let second = angle(position, 2u * i + 1u);
    let cosine = vec2<f32>(first.x, second.x);
    let sine = vec2<f32>(first.y, second.y);
    let turned_low = low * cosine - high * sine;
    let turned_high = high * cosine + low * sine;
    if (is_query) {
      let at = (row * HEADS + head) * HEAD_DIM / 2u;
      q[at + i] = turned_low;
      q[at + partner] = turned_high;
    } else {
      let at = (slot * KV_HEADS + head - HEADS) * HEAD_DIM / 2u;
      store_key(at + i, turned_low);
      store_key(at + partner, turned_high);
    }
  }
}
