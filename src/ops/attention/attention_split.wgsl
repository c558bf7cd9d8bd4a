// A split of attention: one row's query head over one tile of keys, scale 1, softmax in f32
// (attention.h).
// Shapes: q [rows][HEADS][HEAD_DIM]; keys and values [SLOTS][KV_HEADS][HEAD_DIM] as f32 or as pairs
// of f16, position p in slot p % SLOTS. A row sees keys p - WINDOW + 1 .. p (WINDOW 0: from 0), where
// p is its position less LAG, in tiles of 64 keys that start at absolute multiples of 64. One
// workgroup computes one tile, counted from the row's first, into
// partials [rows][HEADS][SPLITS][HEAD_DIM + 4]: the weighted sum of values, the largest score, the
// sum of weights.
// With ROPE q is as its product leaves it: the workgroup turns it to rope(rms_norm(q) * q_norm) at
// the row's own position, angles [positions][ROTATED] of (cos, sin).
// Four lanes share the product of the query and a key; then the invocations that have the same
// elements of the values share the keys.
// Limits: HEAD_DIM a multiple of 8 and at most 512; without ROPE any view may stand in for q_norm and
// angles. 13 KiB of workgroup memory.

//#include step.wgsl
//#include row_sum.wgsl
//#include few_row_attention.wgsl

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
// So many invocations share a unit, each every SHARES-th key.
override SHARES = min(invocations / UNITS, tile);

@group(0) @binding(0) var<uniform> step: Step;
@group(0) @binding(1) var<storage, read> q: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> keys: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> values: array<vec4<u32>>;
@group(0) @binding(4) var<storage, read> q_norm: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read> angles: array<vec2<f32>>;
@group(0) @binding(6) var<storage, read_write> partials: array<vec4<f32>>;

// [lane][key], then the scores and the weights of the keys.
var<workgroup> products: array<f32, 256>;
var<workgroup> scores: array<f32, tile>;
var<workgroup> weights: array<f32, tile>;
var<workgroup> tile_maximum: f32;
// [share][quad]
var<workgroup> totals: array<vec4<f32>, 512>;

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
    products[lane * tile + key] = key_product(cached, lane);
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
