// Attention of one row's query head over a whole window of keys, scale 1, softmax in f32
// (attention.h).
// Shapes: q and y [rows][HEADS][HEAD_DIM]; keys and values [SLOTS][KV_HEADS][HEAD_DIM] as f32 or as
// pairs of f16, position p in slot p % SLOTS. A row sees keys p - WINDOW + 1 .. p, where p is its
// position less LAG. ROPE, q_norm and angles as in attention_split.wgsl.
// PARTS workgroups each find the scores of all keys, and a part of the head's elements: what all need
// of the keys they read from a cache, and no dispatch combines their results.
// Limits: HEAD_DIM a multiple of 8 * PARTS and at most 256, WINDOW at most 513. 15 KiB of workgroup
// memory.

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
override ROPE: bool;
override ROTATED: u32;
override EPSILON: f32;
override PARTS: u32;

override PRODUCTS = lanes * WINDOW;
override PART_UNITS = UNITS / PARTS;
// So many invocations share a unit of the values, each every SHARES-th key.
override SHARES = invocations / PART_UNITS;

@group(0) @binding(0) var<uniform> step: Step;
@group(0) @binding(1) var<storage, read> q: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> keys: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> values: array<vec4<u32>>;
@group(0) @binding(4) var<storage, read> q_norm: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read> angles: array<vec2<f32>>;
@group(0) @binding(6) var<storage, read_write> y: array<vec4<f32>>;

// [lane][key]; then, in place of the first lane's, the scores and the weights of the keys.
var<workgroup> products: array<f32, PRODUCTS>;
// [share][unit of the part]
var<workgroup> totals: array<vec4<f32>, invocations>;

fn row_max(value: f32, local: u32) -> f32 {
  sums[local] = value;
  workgroupBarrier();
  if (local < 16u) {
    var largest = sums[local];
    for (var i = 1u; i < 16u; i++) {
      largest = max(largest, sums[16u * i + local]);
    }
    sums_of_16[local] = largest;
  }
  workgroupBarrier();
  var largest = sums_of_16[0];
  for (var i = 1u; i < 16u; i++) {
    largest = max(largest, sums_of_16[i]);
  }
  return largest;
}

// The sum of what the shares have of a unit, for the first PART_UNITS invocations.
fn sum_of_shares(value: vec4<f32>, local: u32) -> vec4<f32> {
  totals[local] = value;
  workgroupBarrier();
  var sum = vec4<f32>();
  if (local < PART_UNITS) {
    for (var i = 0u; i < SHARES; i++) {
      sum += totals[i * PART_UNITS + local];
    }
  }
  workgroupBarrier();
  return sum;
}

@compute @workgroup_size(invocations)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let index = group.x + group.y * groups.x;
  let part = index % PARTS;
  let head = index / PARTS % HEADS;
  let row = index / PARTS / HEADS;
  if (row >= step.rows) {
    return;
  }
  let position = max(step.position + row, LAG) - LAG;
  let count = min(position + 1u, WINDOW);
  let begin = position + 1u - count;
  let kv_head = head / (HEADS / KV_HEADS);
  read_query((row * HEADS + head) * QUADS, step.position + row, local);

  for (var i = local / lanes; i < count; i += invocations / lanes) {
    let cached = (begin + i) % SLOTS * KV_HEADS + kv_head;
    products[local % lanes * WINDOW + i] = key_product(cached, local % lanes);
  }
  workgroupBarrier();

  var maximum = lowest;
  for (var i = local; i < count; i += invocations) {
    let score = (products[i] + products[WINDOW + i]) +
                (products[2u * WINDOW + i] + products[3u * WINDOW + i]);
    products[i] = score;
    maximum = max(maximum, score);
  }
  maximum = row_max(maximum, local);
  var weight_sum = 0.0;
  for (var i = local; i < count; i += invocations) {
    let key_weight = weight(products[i] - maximum);
    products[i] = key_weight;
    weight_sum += key_weight;
  }
  weight_sum = row_sum(weight_sum, local);

  let unit = part * PART_UNITS + local % PART_UNITS;
  let share = local / PART_UNITS;
  var low = vec4<f32>();
  var high = vec4<f32>();
  if (share < SHARES) {
    // Four at a time, which are read before the first is used; beyond the last with a weight of 0.
    for (var first = share; first < count; first += 4u * SHARES) {
      for (var turn = 0u; turn < 4u; turn++) {
        let wanted = first + turn * SHARES;
        let key = min(wanted, count - 1u);
        let v = value_unit((begin + key) % SLOTS * KV_HEADS + kv_head, unit);
        let key_weight = vec4<f32>(select(0.0, products[key], wanted < count));
        low = fma(key_weight, v.low, low);
        high = fma(key_weight, v.high, high);
      }
    }
  }
  let to = (row * HEADS + head) * QUADS + 2u * unit;
  low = sum_of_shares(low, local);
  high = sum_of_shares(high, local);
  if (local < PART_UNITS) {
    y[to] = low / weight_sum;
    y[to + 1u] = high / weight_sum;
  }
}
