// Attention of many rows over the KV cache, scale 1, softmax in f32: the route `whole`.
// Shapes: q and y [rows][HEADS][HEAD_DIM]; keys and values [SLOTS][KV_HEADS][HEAD_DIM] as f32 or as
// pairs of f16, position p in slot p % SLOTS. A row sees keys p - WINDOW + 1 .. p (WINDOW 0: from
// 0), where p is its position less LAG, in tiles of 64 keys that start at absolute multiples of 64.
// One workgroup walks all tiles for up to 32 queries: HEADS_TOGETHER heads, of one KV head, of
// neighbouring rows. Of a tile it computes the scores, [4 queries][2 keys] an invocation, with
// queries and keys in workgroup memory 16 elements at a time; then the weights; then VALUE_GROUPS
// invocations share the queries of each pair of a value's elements. A tile that a row does not see
// leaves its sums as they are, so that a row has the same bits beside any others.
// Limits: HEAD_DIM a multiple of 8, at most 512; HEADS_TOGETHER a divisor of HEADS / KV_HEADS, at
// most 32; VALUE_GROUPS a power of two up to 8, HEAD_DIM / 2 * VALUE_GROUPS at most 256. 15 KiB of
// workgroup memory.

//#include step.wgsl

override HEADS: u32;
override KV_HEADS: u32;
override HEAD_DIM: u32;
override WINDOW: u32;
override LAG: u32;
override SLOTS: u32;
override KV_F16: bool;
override HEADS_TOGETHER: u32;
override VALUE_GROUPS: u32;

const invocations = 256u;
const query_quads = 8u;  // four queries each
const tile = 64u;
const quads = 4u;  // of a row of the tiles in workgroup memory
const lowest = -3.0e38;

override PAIRS = HEAD_DIM / 2u;
override QUADS = HEAD_DIM / 4u;
override ROWS_TOGETHER = 4u * query_quads / HEADS_TOGETHER;
override BLOCKS = HEADS / HEADS_TOGETHER;
override GROUP_QUADS = query_quads / VALUE_GROUPS;

@group(0) @binding(0) var<uniform> step: Step;
@group(0) @binding(1) var<storage, read> q: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> keys: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> values: array<u32>;
@group(0) @binding(4) var<storage, read_write> y: array<vec2<f32>>;

// [query or key][quads], each row's vec4 permuted by `place`. Between the tiles of keys, key_tile
// has what invocations have of the largest scores, or the sums of weights, of a query quad.
var<workgroup> query_tile: array<vec4<f32>, 128>;
var<workgroup> key_tile: array<vec4<f32>, invocations>;
// [key][query quad], permuted by `place_of_weights`.
var<workgroup> weights: array<vec4<f32>, 512>;
// By query quad: what a tile's sums are scaled by, or the sums of weights.
var<workgroup> factors: array<vec4<f32>, query_quads>;

// Rows that are read together lie in different memory banks.
fn place(row: u32, quad: u32) -> u32 {
  return row * quads + (quad ^ (row / 2u % quads));
}
fn place_of_weights(key: u32, query_quad: u32) -> u32 {
  return key * query_quads + (query_quad ^ (key % query_quads));
}

// exp for differences from a maximum: what is below -80 adds nothing to a sum in f32.
fn weight(difference: vec4<f32>) -> vec4<f32> {
  return exp(clamp(difference, vec4<f32>(-80.0), vec4<f32>(0.0)));
}

struct Query {
  row: u32,
  head: u32,
}
// Of the workgroup's `index`: the heads of a row are neighbours.
fn query_of(first_row: u32, first_head: u32, index: u32) -> Query {
  return Query(first_row + index / HEADS_TOGETHER, first_head + index % HEADS_TOGETHER);
}

fn position_of(row: u32) -> u32 {
  return max(step.position + row, LAG) - LAG;
}
fn first_key(position: u32) -> u32 {
  return select(0u, position + 1u - min(position + 1u, WINDOW), WINDOW > 0u);
}

// Eight elements, as two quads: of f16 in the first.
struct Eight {
  a: vec4<u32>,
  b: vec4<u32>,
}

fn read_key(cached: u32, unit: u32) -> Eight {
  if (KV_F16) {
    return Eight(keys[cached * (QUADS / 2u) + unit], vec4<u32>());
  }
  let at = cached * QUADS + 2u * unit;
  return Eight(keys[at], keys[at + 1u]);
}

fn value_pair(cached: u32, pair: u32) -> vec2<f32> {
  let at = cached * PAIRS + pair;
  if (KV_F16) {
    return unpack2x16float(values[at]);
  }
  return vec2<f32>(bitcast<f32>(values[2u * at]), bitcast<f32>(values[2u * at + 1u]));
}

// What an invocation reads of 16 elements of all keys, or of all queries: eight elements of a key,
// or a quad of a query, from `at` on; beyond the head zeros of the queries.
fn read_ahead(at: u32, is_key: bool, local: u32, first: u32) -> Eight {
  if (is_key) {
    return read_key(at, min(first / 2u + local % 2u, QUADS / 2u - 1u));
  }
  let quad = first + local % quads;
  if (QUADS % quads != 0u && quad >= QUADS) {
    return Eight();
  }
  return Eight(bitcast<vec4<u32>>(q[at * QUADS + quad]), vec4<u32>());
}

fn write_tiles(ahead: Eight, is_key: bool, local: u32) {
  if (!is_key) {
    query_tile[place(local / quads, local % quads)] = bitcast<vec4<f32>>(ahead.a);
    return;
  }
  let key = local / 2u;
  let quad = local % 2u * 2u;
  if (KV_F16) {
    let four = ahead.a;
    key_tile[place(key, quad)] = vec4<f32>(unpack2x16float(four.x), unpack2x16float(four.y));
    key_tile[place(key, quad + 1u)] = vec4<f32>(unpack2x16float(four.z), unpack2x16float(four.w));
  } else {
    key_tile[place(key, quad)] = bitcast<vec4<f32>>(ahead.a);
    key_tile[place(key, quad + 1u)] = bitcast<vec4<f32>>(ahead.b);
  }
}

@compute @workgroup_size(invocations)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) invocation: u32) {
  let index = group.x + group.y * groups.x;
  let first_head = index % BLOCKS * HEADS_TOGETHER;
  let first_row = index / BLOCKS * ROWS_TOGETHER;
  if (first_row >= step.rows) {
    return;
  }
  let rows = min(step.rows - first_row, ROWS_TOGETHER);
  let live_quads = (rows * HEADS_TOGETHER + 3u) / 4u;
  let kv_head = first_head / (HEADS / KV_HEADS);
  // What the first row sees first, and the last one last.
  let begin = first_key(position_of(first_row));
  let last = position_of(first_row + rows - 1u);

  // In the scores: an invocation's four queries, and the first of its two keys.
  let query_quad = invocation / 32u;
  let key = invocation % 32u;
  var positions: vec4<u32>;
  var begins: vec4<u32>;
  for (var i = 0u; i < 4u; i++) {
    positions[i] = position_of(query_of(first_row, 0u, 4u * query_quad + i).row);
    begins[i] = first_key(positions[i]);
  }
  // In the values: an invocation's pair of elements, and the first of its query quads.
  let pair = invocation % PAIRS;
  let first_quad = invocation / PAIRS * GROUP_QUADS;
  let has_pair = first_quad < query_quads;
  // In reading: half of the invocations read keys.
  let is_key = invocation < 128u;
  let local = invocation % 128u;
  let read = query_of(first_row, first_head, local / quads);
  let of_query = min(read.row, step.rows - 1u) * HEADS + min(read.head, HEADS - 1u);

  var maximum = vec4<f32>(lowest);
  var weight_sum = vec4<f32>();
  // The first and second elements of four queries each.
  var total0 = array<vec4<f32>, query_quads>();
  var total1 = array<vec4<f32>, query_quads>();

  for (var tile_begin = begin / tile * tile; tile_begin <= last; tile_begin += tile) {
    let read_position = clamp(tile_begin + local / 2u, begin, last);
    let at = select(of_query, read_position % SLOTS * KV_HEADS + kv_head, is_key);
    var score0 = vec4<f32>();
    var score1 = vec4<f32>();
    var ahead = read_ahead(at, is_key, local, 0u);
    for (var first = 0u; first < QUADS; first += quads) {
      write_tiles(ahead, is_key, local);
      workgroupBarrier();
      if (first + quads < QUADS) {
        ahead = read_ahead(at, is_key, local, first + quads);
      }
      if (query_quad < live_quads) {
        for (var quad = 0u; quad < quads; quad++) {
          let four = mat4x4<f32>(query_tile[place(4u * query_quad, quad)],
                                 query_tile[place(4u * query_quad + 1u, quad)],
                                 query_tile[place(4u * query_quad + 2u, quad)],
                                 query_tile[place(4u * query_quad + 3u, quad)]);
          score0 += key_tile[place(key, quad)] * four;
          score1 += key_tile[place(key + 32u, quad)] * four;
        }
      }
      workgroupBarrier();
    }

    let key0 = vec4<u32>(tile_begin + key);
    let key1 = key0 + vec4<u32>(32u);
    let sees0 = (key0 >= begins) & (key0 <= positions);
    let sees1 = (key1 >= begins) & (key1 <= positions);
    score0 = select(vec4<f32>(lowest), score0, sees0);
    score1 = select(vec4<f32>(lowest), score1, sees1);
    key_tile[invocation] = max(score0, score1);
    workgroupBarrier();
    var updated = maximum;
    for (var i = 32u * query_quad; i < 32u * query_quad + 32u; i += 4u) {
      let low = max(key_tile[i], key_tile[i + 1u]);
      updated = max(updated, max(low, max(key_tile[i + 2u], key_tile[i + 3u])));
    }
    let factor = weight(maximum - updated);
    maximum = updated;
    let weight0 = select(vec4<f32>(), weight(score0 - maximum), sees0);
    let weight1 = select(vec4<f32>(), weight(score1 - maximum), sees1);
    weight_sum = fma(weight_sum, factor, weight0 + weight1);
    weights[place_of_weights(key, query_quad)] = weight0;
    weights[place_of_weights(key + 32u, query_quad)] = weight1;
    if (key == 0u) {
      factors[query_quad] = factor;
    }
    workgroupBarrier();

    if (has_pair) {
      for (var i = 0u; i < GROUP_QUADS; i++) {
        total0[i] *= factors[first_quad + i];
        total1[i] *= factors[first_quad + i];
      }
      for (var first = 0u; first < tile; first += 8u) {
        var read_values = array<vec2<f32>, 8>();
        for (var i = 0u; i < 8u; i++) {
          let value_position = clamp(tile_begin + first + i, begin, last);
          read_values[i] = value_pair(value_position % SLOTS * KV_HEADS + kv_head, pair);
        }
        for (var i = 0u; i < 8u; i++) {
          for (var k = 0u; k < GROUP_QUADS; k++) {
            let four = weights[place_of_weights(first + i, first_quad + k)];
            total0[k] = fma(four, vec4<f32>(read_values[i].x), total0[k]);
            total1[k] = fma(four, vec4<f32>(read_values[i].y), total1[k]);
          }
        }
      }
    }
  }

  key_tile[invocation] = weight_sum;
  workgroupBarrier();
  if (key == 0u) {
    for (var i = 1u; i < 32u; i++) {
      weight_sum += key_tile[invocation + i];
    }
    factors[query_quad] = weight_sum;
  }
  workgroupBarrier();
  if (!has_pair) {
    return;
  }
  for (var k = 0u; k < GROUP_QUADS; k++) {
    for (var i = 0u; i < 4u; i++) {
      let wanted = 4u * (first_quad + k) + i;
      let to = query_of(first_row, first_head, wanted);
      if (wanted / HEADS_TOGETHER < rows) {
        y[(to.row * HEADS + to.head) * PAIRS + pair] =
            vec2<f32>(total0[k][i], total1[k][i]) / factors[first_quad + k][i];
      }
    }
  }
}
