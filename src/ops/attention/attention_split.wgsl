// A split of attention: one row's query head over one tile of keys, scale 1, softmax in f32 (attention.h).
// Shapes: q [rows][HEADS][HEAD_DIM]; keys and values [SLOTS][KV_HEADS][HEAD_DIM] as f32 or as pairs
// of f16, position p in slot p % SLOTS. A row sees keys p - WINDOW + 1 .. p (WINDOW 0: from 0), where
// p is its position less LAG, in tiles of 64 keys that start at absolute multiples of 64. One
// workgroup computes one tile, counted from the row's first, into
// partials [rows][HEADS][SPLITS][HEAD_DIM + 4]: the weighted sum of values, the largest score, the sum
// of weights.
// With ROPE q is as its product leaves it: the workgroup turns it to rope(rms_norm(q) * q_norm) at the
// row's own position, angles [positions][ROTATED] of (cos, sin).
// Four lanes share the product of the query and a key, and read it side by side; then the invocations
// that have the same elements of the values share the keys.
// Limits: HEAD_DIM a multiple of 8 and at most 512; without ROPE any view may stand in for q_norm and
// angles. 13 KiB of workgroup memory.

//#include step.wgsl
//#include row_sum.wgsl

override HEADS: u32;
override KV_HEADS: u32;
override HEAD_DIM: u32;
override WINDOW: u32;
override LAG: u32;
override SLOTS: u32;
override KV_F16: bool;
override SPLITS: u32;
override ROPE: bool;
override ROTATED: u32;
override EPSILON: f32;

const tile = 64u;
const lanes = 4u;
const lowest = -3.0e38;

override QUADS = HEAD_DIM / 4u;
// Of eight elements: what an invocation has of the values.
override UNITS = HEAD_DIM / 8u;
// So many invocations share a unit, each every SHARES-th key.
override SHARES = min(invocations / UNITS, tile);

@group(0) @binding(0) var<uniform> step: Step;
@group(0) @binding(1) var<storage, read> q: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> keys: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> values: array<vec4<u32>>;
@group(0) @binding(4) var<storage, read> q_norm: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read> angles: array<vec2<f32>>;
@group(0) @binding(6) var<storage, read_write> partials: array<vec4<f32>>;

var<workgroup> query: array<vec4<f32>, QUADS>;
// [lane][key], then the scores and the weights of the keys.
var<workgroup> products: array<f32, 256>;
var<workgroup> scores: array<f32, tile>;
var<workgroup> weights: array<f32, tile>;
var<workgroup> tile_maximum: f32;
// [share][quad]
var<workgroup> totals: array<vec4<f32>, 512>;

struct Eight {
  low: vec4<f32>,
  high: vec4<f32>,
}

fn halves(words: vec4<u32>) -> Eight {
  return Eight(vec4<f32>(unpack2x16float(words.x), unpack2x16float(words.y)),
               vec4<f32>(unpack2x16float(words.z), unpack2x16float(words.w)));
}

// Elements 8 * unit .. 8 * unit + 7 of a slot's head.
fn key_unit(cached: u32, unit: u32) -> Eight {
  if (KV_F16) {
    return halves(keys[cached * UNITS + unit]);
  }
  let at = cached * QUADS + 2u * unit;
  return Eight(bitcast<vec4<f32>>(keys[at]), bitcast<vec4<f32>>(keys[at + 1u]));
}
fn value_unit(cached: u32, unit: u32) -> Eight {
  if (KV_F16) {
    return halves(values[cached * UNITS + unit]);
  }
  let at = cached * QUADS + 2u * unit;
  return Eight(bitcast<vec4<f32>>(values[at]), bitcast<vec4<f32>>(values[at + 1u]));
}

// exp for differences from a maximum: what is below -80 adds nothing to a sum in f32.
fn weight(difference: f32) -> f32 {
  return exp(clamp(difference, -80.0, 0.0));
}

fn angle(position: u32, pair: u32) -> vec2<f32> {
  if (pair >= ROTATED) {
    return vec2<f32>(1.0, 0.0);
  }
  let row = min(position, arrayLength(&angles) / ROTATED - 1u);
  return angles[row * ROTATED + pair];
}

// Leaves the head's query from quad `first_quad` of q on in `query`.
fn read_query(first_quad: u32, position: u32, local: u32) {
  var value = vec4<f32>();
  if (local < QUADS) {
    value = q[first_quad + local];
  }
  if (ROPE) {
    let squares = value * value;
    let sum = row_sum((squares.x + squares.y) + (squares.z + squares.w), local);
    value *= inverseSqrt(sum / f32(HEAD_DIM) + EPSILON);
    if (local < QUADS) {
      query[local] = value * q_norm[local];
    }
    workgroupBarrier();
    // Each has the quad of its number and the quad that it is turned with.
    let first = local % (QUADS / 2u);
    let low = query[first];
    let high = query[first + QUADS / 2u];
    let turns = transpose(mat4x2<f32>(angle(position, 4u * first), angle(position, 4u * first + 1u),
                                      angle(position, 4u * first + 2u),
                                      angle(position, 4u * first + 3u)));
    value = select(high * turns[0] + low * turns[1], low * turns[0] - high * turns[1],
                   local < QUADS / 2u);
    workgroupBarrier();
  }
  if (local < QUADS) {
    query[local] = value;
  }
  workgroupBarrier();
}

@compute @workgroup_size(invocations)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  if (step.rows == 0u) {
    return;
  }
  let index = group.x + group.y * groups.x;
  let head = index % HEADS;
  let row = index / HEADS % step.rows;
  let split = index / HEADS / step.rows;

  let position = max(step.position + row, LAG) - LAG;
  let begin = select(0u, position + 1u - min(position + 1u, WINDOW), WINDOW > 0u);
  let first_tile = begin / tile;
  if (split >= min(position / tile + 1u - first_tile, SPLITS)) {
    return;
  }
  let tile_begin = (first_tile + split) * tile;
  // The keys of the tile that the row sees.
  let key_begin = max(begin, tile_begin) - tile_begin;
  let key_end = min(position + 1u - tile_begin, tile);
  let kv_head = head / (HEADS / KV_HEADS);

  read_query((row * HEADS + head) * QUADS, step.position + row, local);

  let key = local / lanes;
  let lane = local % lanes;
  if (key >= key_begin && key < key_end) {
    let cached = (tile_begin + key) % SLOTS * KV_HEADS + kv_head;
    var sum = vec4<f32>();
    for (var first = 0u; first < UNITS; first += lanes) {
      let unit = first + lane;
      if (UNITS % lanes == 0u || unit < UNITS) {
        let k = key_unit(cached, unit);
        sum = fma(query[2u * unit], k.low, sum);
        sum = fma(query[2u * unit + 1u], k.high, sum);
      }
    }
    products[lane * tile + key] = (sum.x + sum.y) + (sum.z + sum.w);
  }
  workgroupBarrier();

  if (local < tile) {
    let is_seen = local >= key_begin && local < key_end;
    let score = (products[local] + products[tile + local]) +
                (products[2u * tile + local] + products[3u * tile + local]);
    scores[local] = select(lowest, score, is_seen);
  }
  workgroupBarrier();

  if (local < tile) {
    var maximum = lowest;
    for (var i = 0u; i < tile; i++) {
      maximum = max(maximum, scores[i]);
    }
    weights[local] = select(0.0, weight(scores[local] - maximum), scores[local] > lowest);
    if (local == 0u) {
      tile_maximum = maximum;
    }
  }
  workgroupBarrier();

  let unit = local % UNITS;
  let share = local / UNITS;
  if (share < SHARES) {
    var low = vec4<f32>();
    var high = vec4<f32>();
    for (var first = 0u; first < tile; first += SHARES) {
      let i = first + share;
      if (i >= key_begin && i < key_end) {
        let v = value_unit((tile_begin + i) % SLOTS * KV_HEADS + kv_head, unit);
        low = fma(vec4<f32>(weights[i]), v.low, low);
        high = fma(vec4<f32>(weights[i]), v.high, high);
      }
    }
    totals[share * QUADS + 2u * unit] = low;
    totals[share * QUADS + 2u * unit + 1u] = high;
  }
  workgroupBarrier();

  let to = ((row * HEADS + head) * SPLITS + split) * (QUADS + 1u);
  if (local < QUADS) {
    var total = totals[local];
    for (var i = 1u; i < SHARES; i++) {
      total += totals[i * QUADS + local];
    }
    partials[to + local] = total;
  } else if (local == QUADS) {
    var sum = 0.0;
    for (var i = 0u; i < tile; i++) {
      sum += weights[i];
    }
    partials[to + QUADS] = vec4<f32>(tile_maximum, sum, 0.0, 0.0);
  }
}
