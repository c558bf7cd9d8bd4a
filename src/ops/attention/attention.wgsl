// Attention of one row's query heads over the KV cache, scale 1, softmax in f32: the route `whole`.
// Shapes: q and y [rows][HEADS][HEAD_DIM]; keys and values [SLOTS][KV_HEADS][HEAD_DIM] as f32 or as
// pairs of f16, position p in slot p % SLOTS. A row sees keys p - WINDOW + 1 .. p (WINDOW 0: from
// 0), where p is its position less LAG, in tiles of TILE keys that start at absolute multiples of
// TILE.
// One workgroup walks all tiles for QUERIES heads, all of one row and of one KV head.
// Limits: HEAD_DIM a multiple of 8 and at most 2 * INVOCATIONS; QUERIES at most 4 and a divisor of
// HEADS / KV_HEADS; QUERIES * HEAD_DIM at most 2048 (8 KiB of workgroup memory).

//#include step.wgsl

override HEADS: u32;
override KV_HEADS: u32;
override HEAD_DIM: u32;
override WINDOW: u32;
override LAG: u32;
override SLOTS: u32;
override KV_F16: bool;
override TILE: u32;
override QUERIES: u32;
override INVOCATIONS: u32;
override LANES: u32;  // invocations that share one product of a query and a key

const MAX_QUERIES = 4u;
const LOWEST = -3.0e38;

override PAIRS = HEAD_DIM / 2u;
override QUADS = HEAD_DIM / 4u;
override BLOCKS = HEADS / QUERIES;
override SCORES = QUERIES * TILE;

@group(0) @binding(0) var<uniform> step: Step;
@group(0) @binding(1) var<storage, read> q: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> keys: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> values: array<u32>;
@group(0) @binding(4) var<storage, read_write> y: array<vec2<f32>>;

var<workgroup> queries: array<vec4<f32>, QUERIES * QUADS>;
var<workgroup> products: array<f32, LANES * SCORES>;
var<workgroup> scores: array<f32, SCORES>;
var<workgroup> weights: array<f32, SCORES>;
var<workgroup> tile_maxima: array<f32, MAX_QUERIES>;

// exp for differences from a maximum: what is below -80 adds nothing to a sum in f32.
fn weight(difference: f32) -> f32 {
  return exp(clamp(difference, -80.0, 0.0));
}

// The part of the product of `query` and the key at `cached` (a slot's head) that `lane` sums.
fn partial_product(query: u32, cached: u32, lane: u32) -> f32 {
  let base = query * QUADS;
  var sum = vec4<f32>(0.0);
  if (KV_F16) {
    for (var i = lane; i < QUADS / 2u; i += LANES) {
      let key = keys[cached * (QUADS / 2u) + i];
      let low = vec4<f32>(unpack2x16float(key.x), unpack2x16float(key.y));
      let high = vec4<f32>(unpack2x16float(key.z), unpack2x16float(key.w));
      sum += queries[base + 2u * i] * low;
      sum += queries[base + 2u * i + 1u] * high;
    }
  } else {
    for (var i = lane; i < QUADS; i += LANES) {
      sum += queries[base + i] * bitcast<vec4<f32>>(keys[cached * QUADS + i]);
    }
  }
  return (sum.x + sum.y) + (sum.z + sum.w);
}

fn value_pair(cached: u32, pair: u32) -> vec2<f32> {
  let at = cached * PAIRS + pair;
  if (KV_F16) {
    return unpack2x16float(values[at]);
  }
  return vec2<f32>(bitcast<f32>(values[2u * at]), bitcast<f32>(values[2u * at + 1u]));
}

@compute @workgroup_size(INVOCATIONS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) invocation: u32) {
  let index = group.x + group.y * groups.x;
  let first_head = index % BLOCKS * QUERIES;
  let row = index / BLOCKS;
  if (row >= step.rows) {
    return;
  }

  let position = max(step.position + row, LAG) - LAG;
  let begin = select(0u, position + 1u - min(position + 1u, WINDOW), WINDOW > 0u);
  let end = position + 1u;
  let row_tile = begin / TILE;
  let tiles = position / TILE + 1u - row_tile;
  let kv_head = first_head / (HEADS / KV_HEADS);

  for (var i = invocation; i < QUERIES * QUADS; i += INVOCATIONS) {
    queries[i] = q[(row * HEADS + first_head) * QUADS + i];
  }
  workgroupBarrier();

  // Of the keys so far: the weighted sum of values (the invocation's pair of elements), the largest
  // score, and the sum of weights.
  var total: array<vec2<f32>, MAX_QUERIES>;
  var maximum: array<f32, MAX_QUERIES>;
  var weight_sum: array<f32, MAX_QUERIES>;
  for (var query = 0u; query < QUERIES; query++) {
    maximum[query] = LOWEST;
  }

  for (var tile = row_tile; tile < row_tile + tiles; tile++) {
    let tile_begin = tile * TILE;
    let key_begin = max(begin, tile_begin);
    let key_end = min(end, tile_begin + TILE);

    for (var i = invocation; i < LANES * SCORES; i += INVOCATIONS) {
      let lane = i % LANES;
      let query = i / LANES % QUERIES;
      let key = i / LANES / QUERIES;
      let key_position = tile_begin + key;
      if (key_position >= key_begin && key_position < key_end) {
        let cached = key_position % SLOTS * KV_HEADS + kv_head;
        products[lane * SCORES + query * TILE + key] = partial_product(query, cached, lane);
      }
    }
    workgroupBarrier();

    for (var i = invocation; i < SCORES; i += INVOCATIONS) {
      let key_position = tile_begin + i % TILE;
      var score = LOWEST;
      if (key_position >= key_begin && key_position < key_end) {
        score = products[i];
        for (var lane = 1u; lane < LANES; lane++) {
          score += products[lane * SCORES + i];
        }
      }
      scores[i] = score;
    }
    workgroupBarrier();

    for (var i = invocation; i < SCORES; i += INVOCATIONS) {
      let query = i / TILE;
      var tile_maximum = LOWEST;
      for (var key = 0u; key < TILE; key++) {
        tile_maximum = max(tile_maximum, scores[query * TILE + key]);
      }
      weights[i] = weight(scores[i] - tile_maximum);
      if (i % TILE == 0u) {
        tile_maxima[query] = tile_maximum;
      }
    }
    workgroupBarrier();

    if (invocation < PAIRS) {
      // The initializers are spelled out: not every driver zeroes a loop's variables each time around.
      var tile_total = array<vec2<f32>, MAX_QUERIES>();
      var tile_sum = array<f32, MAX_QUERIES>();
      for (var key_position = key_begin; key_position < key_end; key_position++) {
        let value = value_pair(key_position % SLOTS * KV_HEADS + kv_head, invocation);
        for (var query = 0u; query < QUERIES; query++) {
          let key_weight = weights[query * TILE + key_position - tile_begin];
          tile_total[query] += key_weight * value;
          tile_sum[query] += key_weight;
        }
      }
      for (var query = 0u; query < QUERIES; query++) {
        let updated = max(maximum[query], tile_maxima[query]);
        let old_weight = weight(maximum[query] - updated);
        let tile_weight = weight(tile_maxima[query] - updated);
        total[query] = total[query] * old_weight + tile_total[query] * tile_weight;
        weight_sum[query] = weight_sum[query] * old_weight + tile_sum[query] * tile_weight;
        maximum[query] = updated;
      }
    }
  }

  if (invocation >= PAIRS) {
    return;
  }
  for (var query = 0u; query < QUERIES; query++) {
    let head = row * HEADS + first_head + query;
    y[head * PAIRS + invocation] = total[query] / weight_sum[query];
  }
}
