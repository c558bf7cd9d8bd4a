// A split of attention: some query heads of one row over one tile of keys, scale 1, softmax in f32
// (attention.h).
// Shapes: q [rows][HEADS][HEAD_DIM]; keys and values [SLOTS][KV_HEADS][HEAD_DIM] as f32 or as pairs
// of f16, position p in slot p % SLOTS. A row sees keys p - WINDOW + 1 .. p (WINDOW 0: from 0),
// where p is its position less LAG, in tiles of TILE keys that start at absolute multiples of TILE.
// One workgroup computes one tile, counted from the row's first, for QUERIES heads that read the
// same KV head, into partials [rows][HEADS][SPLITS][HEAD_DIM + 4]: the weighted sum of values, the
// largest score, the sum of weights. With ROPE q is as its product leaves it: the workgroup turns
// it to rope(rms_norm(q) * q_norm) at the row's own position, angles [positions][ROTATED] of (cos,
// sin). LANES invocations share the products of a key; then the invocations that have the same
// elements of the values share the keys. What is read of the keys, and then of the values, is read
// before its first use. Limits: HEAD_DIM a multiple of 8 and at most 512; QUERIES a divisor of
// HEADS / KV_HEADS, at most 4; TILE 32 or 64; without ROPE any view may stand in for q_norm and
// angles. 16 KiB of workgroup memory.

//#include step.wgsl

override HEADS: u32;
override KV_HEADS: u32;
override HEAD_DIM: u32;
override WINDOW: u32;
override LAG: u32;
override SLOTS: u32;
override KV_F16: bool;
override SPLITS: u32;
override QUERIES: u32;
override TILE: u32;
override ROPE: bool;
override ROTATED: u32;
override EPSILON: f32;

const invocations = 256u;
const most_queries = 4u;
const lowest = -3.0e38;

override QUADS = HEAD_DIM / 4u;
override HALF_QUADS = HEAD_DIM / 8u;
// Of eight elements: what an invocation reads of a key or value at once.
override UNITS = HEAD_DIM / 8u;
override LANES = invocations / TILE;
override UNITS_PER_LANE = (UNITS + LANES - 1u) / LANES;
// So many invocations share a unit of the values, each every SHARES-th key.
override SHARES = min(invocations / UNITS, TILE);
override KEYS_PER_SHARE = (TILE + SHARES - 1u) / SHARES;

@group(0) @binding(0) var<uniform> step: Step;
@group(0) @binding(1) var<storage, read> q: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> keys: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> values: array<vec4<u32>>;
@group(0) @binding(4) var<storage, read> q_norm: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read> angles: array<vec2<f32>>;
@group(0) @binding(6) var<storage, read_write> partials: array<vec4<f32>>;

// The queries [query][quad]; then what shares have of a query's values [share][quad].
var<workgroup> quads: array<vec4<f32>, 512>;
// [lane][query][key]; the queries' sums of squares before that.
var<workgroup> products: array<f32, invocations * QUERIES>;
// [query][key]; then the shares' sums of a query's weights.
var<workgroup> scores: array<f32, QUERIES * TILE>;
var<workgroup> weights: array<f32, QUERIES * TILE>;

struct Eight {
  low: vec4<f32>,
  high: vec4<f32>,
}

// Elements 8 * unit .. 8 * unit + 7 of a slot's head as they are stored: in `a`, of f32 also in
// `b`.
struct Stored {
  a: vec4<u32>,
  b: vec4<u32>,
}

fn stored_key(cached: u32, unit: u32) -> Stored {
  if (KV_F16) {
    return Stored(keys[cached * UNITS + unit], vec4<u32>());
  }
  let at = cached * QUADS + 2u * unit;
  return Stored(keys[at], keys[at + 1u]);
}
fn stored_value(cached: u32, unit: u32) -> Stored {
  if (KV_F16) {
    return Stored(values[cached * UNITS + unit], vec4<u32>());
  }
  let at = cached * QUADS + 2u * unit;
  return Stored(values[at], values[at + 1u]);
}

fn elements(stored: Stored) -> Eight {
  if (KV_F16) {
    return Eight(vec4<f32>(unpack2x16float(stored.a.x), unpack2x16float(stored.a.y)),
                 vec4<f32>(unpack2x16float(stored.a.z), unpack2x16float(stored.a.w)));
  }
  return Eight(bitcast<vec4<f32>>(stored.a), bitcast<vec4<f32>>(stored.b));
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

// Leaves the queries that begin at quad `first_quad` of q in `quads`, turned or not. An invocation
// has a quad and the quad that it is turned with.
fn read_queries(first_quad: u32, position: u32, local: u32) {
  let query = local / HALF_QUADS;
  let quad = local % HALF_QUADS;
  let at = query * QUADS + quad;
  var low = vec4<f32>();
  var high = vec4<f32>();
  if (query < QUERIES) {
    low = q[first_quad + at];
    high = q[first_quad + at + HALF_QUADS];
  }
  if (ROPE) {
    let turns = transpose(mat4x2<f32>(angle(position, 4u * quad), angle(position, 4u * quad + 1u),
                                      angle(position, 4u * quad + 2u),
                                      angle(position, 4u * quad + 3u)));
    let low_norm = q_norm[quad];
    let high_norm = q_norm[quad + HALF_QUADS];
    let squares = fma(low, low, high * high);
    products[local] = (squares.x + squares.y) + (squares.z + squares.w);
    workgroupBarrier();
    // Sixteen invocations of each query, then all.
    if (local < 16u * QUERIES) {
      var sum = 0.0;
      for (var i = local % 16u; i < HALF_QUADS; i += 16u) {
        sum += products[local / 16u * HALF_QUADS + i];
      }
      scores[local] = sum;
    }
    workgroupBarrier();
    var sum = 0.0;
    for (var i = 0u; i < 16u; i++) {
      sum += scores[min(query, QUERIES - 1u) * 16u + i];
    }
    let scale = inverseSqrt(sum / f32(HEAD_DIM) + EPSILON);
    low *= scale * low_norm;
    high *= scale * high_norm;
    let turned_low = low * turns[0] - high * turns[1];
    high = high * turns[0] + low * turns[1];
    low = turned_low;
  }
  if (query < QUERIES) {
    quads[at] = low;
    quads[at + HALF_QUADS] = high;
  }
  workgroupBarrier();
}

// Adds up what the shares have of a query's eight elements and of its weights, into the partials
// that begin at `first`.
fn write_query(query: u32, low: vec4<f32>, high: vec4<f32>, weight_sum: f32, first: u32,
               local: u32) {
  let unit = local % UNITS;
  let share = local / UNITS;
  if (share < SHARES) {
    quads[share * QUADS + 2u * unit] = low;
    quads[share * QUADS + 2u * unit + 1u] = high;
    if (unit == 0u) {
      scores[share] = weight_sum;
    }
  }
  workgroupBarrier();
  let to = first + query * SPLITS * (QUADS + 1u);
  if (local < QUADS) {
    var total = quads[local];
    for (var i = 1u; i < SHARES; i++) {
      total += quads[i * QUADS + local];
    }
    partials[to + local] = total;
  } else if (local == QUADS) {
    var sum = scores[0];
    for (var i = 1u; i < SHARES; i++) {
      sum += scores[i];
    }
    partials[to + QUADS] = vec4<f32>(products[query * TILE], sum, 0.0, 0.0);
  }
  workgroupBarrier();
}

@compute @workgroup_size(invocations)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  if (step.rows == 0u) {
    return;
  }
  let blocks = HEADS / QUERIES;
  let index = group.x + group.y * groups.x;
  let first_head = index % blocks * QUERIES;
  let row = index / blocks % step.rows;
  let split = index / blocks / step.rows;

  let position = max(step.position + row, LAG) - LAG;
  let begin = select(0u, position + 1u - min(position + 1u, WINDOW), WINDOW > 0u);
  let first_tile = begin / TILE;
  if (split >= min(position / TILE + 1u - first_tile, SPLITS)) {
    return;
  }
  let tile_begin = (first_tile + split) * TILE;
  // The keys of the tile that the row sees.
  let key_begin = max(begin, tile_begin) - tile_begin;
  let key_end = min(position + 1u - tile_begin, TILE);
  let kv_head = first_head / (HEADS / KV_HEADS);

  // Beyond what the row sees, and beyond the head, what is read is seen but unused.
  let lane = local % LANES;
  let key = local / LANES;
  let cached = (tile_begin + clamp(key, key_begin, key_end - 1u)) % SLOTS * KV_HEADS + kv_head;
  var read: array<Stored, 16>;
  for (var i = 0u; i < UNITS_PER_LANE; i++) {
    read[i] = stored_key(cached, min(i * LANES + lane, UNITS - 1u));
  }
  read_queries((row * HEADS + first_head) * QUADS, step.position + row, local);

  var sums = array<vec4<f32>, most_queries>();
  for (var i = 0u; i < UNITS_PER_LANE; i++) {
    let unit = i * LANES + lane;
    if (UNITS % LANES == 0u || unit < UNITS) {
      let k = elements(read[i]);
      for (var query = 0u; query < QUERIES; query++) {
        sums[query] = fma(quads[query * QUADS + 2u * unit], k.low, sums[query]);
        sums[query] = fma(quads[query * QUADS + 2u * unit + 1u], k.high, sums[query]);
      }
    }
  }
  for (var query = 0u; query < QUERIES; query++) {
    let sum = sums[query];
    products[(lane * QUERIES + query) * TILE + key] = (sum.x + sum.y) + (sum.z + sum.w);
  }

  let unit = local % UNITS;
  let share = local / UNITS;
  for (var i = 0u; i < KEYS_PER_SHARE; i++) {
    let wanted = clamp(i * SHARES + share, key_begin, key_end - 1u);
    read[i] = stored_value((tile_begin + wanted) % SLOTS * KV_HEADS + kv_head, unit);
  }
  workgroupBarrier();

  let is_seen = local % TILE >= key_begin && local % TILE < key_end;
  if (local < QUERIES * TILE) {
    var score = products[local];
    for (var i = 1u; i < LANES; i++) {
      score += products[i * QUERIES * TILE + local];
    }
    scores[local] = select(lowest, score, is_seen);
  }
  workgroupBarrier();

  if (local < QUERIES * TILE) {
    let first = local / TILE * TILE;
    var maximum = lowest;
    // Eight at a time, which are read before the first is used.
    for (var i = first; i < first + TILE; i += 8u) {
      let low = max(max(scores[i], scores[i + 1u]), max(scores[i + 2u], scores[i + 3u]));
      let high = max(max(scores[i + 4u], scores[i + 5u]), max(scores[i + 6u], scores[i + 7u]));
      maximum = max(maximum, max(low, high));
    }
    weights[local] = select(0.0, weight(scores[local] - maximum), is_seen);
    if (local % TILE == 0u) {
      products[local] = maximum;
    }
  }
  workgroupBarrier();

  var low = array<vec4<f32>, most_queries>();
  var high = array<vec4<f32>, most_queries>();
  var weight_sums = array<f32, most_queries>();
  for (var i = 0u; i < KEYS_PER_SHARE; i++) {
    let wanted = i * SHARES + share;
    if (share < SHARES && wanted < TILE) {
      let v = elements(read[i]);
      for (var query = 0u; query < QUERIES; query++) {
        let key_weight = weights[query * TILE + wanted];
        low[query] = fma(vec4<f32>(key_weight), v.low, low[query]);
        high[query] = fma(vec4<f32>(key_weight), v.high, high[query]);
        weight_sums[query] += key_weight;
      }
    }
  }
  // Written out: what a loop around barriers indexes does not stay in registers.
  let to = ((row * HEADS + first_head) * SPLITS + split) * (QUADS + 1u);
  write_query(0u, low[0], high[0], weight_sums[0], to, local);
  if (QUERIES > 1u) {
    write_query(1u, low[1], high[1], weight_sums[1], to, local);
  }
  if (QUERIES > 2u) {
    write_query(2u, low[2], high[2], weight_sums[2], to, local);
  }
  if (QUERIES > 3u) {
    write_query(3u, low[3], high[3], weight_sums[3], to, local);
  }
}
