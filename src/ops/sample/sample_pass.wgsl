// The passes of sampling that follow the first (sample.h). Passes 0 to 5 select the lowest value
// that top-k (0 to 2) and then top-p (3 to 5) keep: each counts the row's keys, or sums their
// probabilities, by their next digit, from the high one to the low one; the pass after it finds the
// digit at which the sum from the top reaches its goal. Pass DRAW adds noise to what is kept.
// Shapes: keys [rows][TILES * TILE] as sample_adjust.wgsl writes them, state [rows][STATE_WORDS],
// partials [rows][TILES] of (ordered value, column) as argmax_combine.wgsl reads them. One
// workgroup computes a tile of a row; all of a row find the same digit.
// All sums are of integers, so they do not depend on their order. A sum is the pair (high, low) of
// high * 2^20 + low. Limits: at most 2^20 columns; INVOCATIONS a power of two up to 256.

//#include step.wgsl

struct Settings {
  greedy: u32,
  scale: f32,
  top_k: u32,
  top_p: u32,
  min_p: f32,
  penalty: f32,
  inverse_penalty: f32,
  penalty_window: u32,
  seed: vec2<u32>,
  bias_count: u32,
  reserved: u32,
}

override TILES: u32;
override PASS: u32;
override INVOCATIONS: u32;

const QUADS = 4u;   // of columns, for each invocation
const LEVELS = 3u;  // digits of 11, 11 and 10 bits
const BINS = 2048u;
const DRAW = 2u * LEVELS;
const LIMB = 20u;
const LIMB_MASK = (1u << LIMB) - 1u;
const LOWEST_KEY = 0x00800000u;  // of a finite value

// A row's state: the largest key; the lowest key that top-k keeps; for each pass what the one
// before it found (digits, then the rest of the goal, a sum); then the histograms of the passes,
// each BINS low and BINS high parts of sums.
const MAXIMUM = 0u;
const TOP_K_FLOOR = 1u;
const FOUND = 2u;
const HISTOGRAMS = 32u;
const STATE_WORDS = HISTOGRAMS + DRAW * 2u * BINS;

override RUN = BINS / INVOCATIONS;  // bins of an invocation
override TILE = 4u * QUADS * INVOCATIONS;
override LEVEL = PASS % LEVELS;
override BEFORE = max(PASS, 1u) - 1u;  // the pass before

@group(0) @binding(0) var<uniform> step: Step;
@group(0) @binding(1) var<uniform> settings: Settings;
@group(0) @binding(2) var<storage, read> keys: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read_write> state: array<atomic<u32>>;
@group(0) @binding(4) var<storage, read_write> partials: array<vec2<u32>>;

var<workgroup> low: array<atomic<u32>, BINS>;
var<workgroup> high: array<atomic<u32>, BINS>;

// The values of keys, and keys of values: integers of the same order.
fn values_of(ordered: vec4<u32>) -> vec4<f32> {
  let positive = ordered >= vec4<u32>(0x80000000u);
  return bitcast<vec4<f32>>(select(~ordered, ordered & vec4<u32>(0x7fffffffu), positive));
}

fn keys_of(values: vec4<f32>) -> vec4<u32> {
  let bits = bitcast<vec4<u32>>(values);
  return select((bits & vec4<u32>(0x7fffffffu)) | vec4<u32>(0x80000000u), ~bits,
                bits > vec4<u32>(0x80000000u));
}

// How far the values of keys are below the row's largest, as negative numbers.
fn below_maximum(row: u32, ordered: vec4<u32>) -> vec4<f32> {
  let maximum = atomicLoad(&state[row * STATE_WORDS + MAXIMUM]);
  return values_of(max(ordered, vec4<u32>(LOWEST_KEY))) - values_of(vec4<u32>(maximum));
}

// The high words of the products.
fn multiply_high(a: vec4<u32>, b: vec4<u32>) -> vec4<u32> {
  let half = vec4<u32>(16u);
  let mask = vec4<u32>(0xffffu);
  let middle = (a >> half) * (b & mask) + (((a & mask) * (b & mask)) >> half);
  let carried = (a & mask) * (b >> half) + (middle & mask);
  return (a >> half) * (b >> half) + (middle >> half) + (carried >> half);
}

// floor(a * x / 2^32).
fn product(a: vec4<i32>, x: vec4<u32>) -> vec4<i32> {
  let unsigned = multiply_high(bitcast<vec4<u32>>(a), x);
  return bitcast<vec4<i32>>(unsigned - select(vec4<u32>(0u), x, a < vec4<i32>(0)));
}

// Sums.
fn normal(sum: vec2<u32>) -> vec2<u32> {
  return vec2<u32>(sum.x + (sum.y >> LIMB), sum.y & LIMB_MASK);
}

fn difference(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  return vec2<u32>(a.x - b.x - select(0u, 1u, a.y < b.y), (a.y - b.y) & LIMB_MASK);
}

fn reaches(sum: vec2<u32>, goal: vec2<u32>) -> bool {
  return sum.x > goal.x || (sum.x == goal.x && sum.y >= goal.y);
}

// 1 + floor of (total * share / 2^32), the two limbs of the total rounded down each.
fn portion(total: vec2<u32>, share: u32) -> vec2<u32> {
  let products = multiply_high(vec4<u32>(total, 0u, 0u), vec4<u32>(share));
  return normal(vec2<u32>(products.x, ((total.x * share) >> (32u - LIMB)) + products.y + 1u));
}

// 2^x in units of 2^-31, rounded down, for x <= 0. The polynomial is 2^y - 1 for 0 <= y < 1.
fn powers_of_2(x: vec4<f32>) -> vec4<u32> {
  let fixed = vec4<u32>(min(-x, vec4<f32>(32.0)) * 33554432.0);
  let whole = (fixed + 0x1ffffffu) >> vec4<u32>(25u);
  let y = ((whole << vec4<u32>(25u)) - fixed) << vec4<u32>(7u);
  var sum = product(vec4<i32>(447061), y);
  sum = product(sum + 2725622, y);
  sum = product(sum + 20727931, y);
  sum = product(sum + 119176803, y);
  sum = product(sum + 515883993, y);
  sum = product(sum + 1488522215, y);
  let power = (bitcast<vec4<u32>>(sum) + 0x80000000u) >> min(whole, vec4<u32>(31u));
  return select(power, vec4<u32>(0u), whole > vec4<u32>(31u));
}

// What noise.cpp computes, bit for bit.
fn fixed_log2(n: vec4<u32>) -> vec4<i32> {
  let zeros = countLeadingZeros(n);
  let x = (n << zeros) << vec4<u32>(1u);
  var sum = product(vec4<i32>(-12967602), x);
  sum = product(sum + 67375618, x);
  sum = product(sum - 165519456, x);
  sum = product(sum + 273993518, x);
  sum = product(sum - 379134322, x);
  sum = product(sum + 515409455, x);
  sum = product(sum - 774497234, x);
  sum = product(sum + 1549081665, x);
  return bitcast<vec4<i32>>((31u - zeros) << vec4<u32>(25u)) + (sum >> vec4<u32>(5u));
}

fn fixed_curve(z: vec4<u32>) -> vec4<i32> {
  var sum = product(vec4<i32>(6699496), z);
  sum = product(sum - 7952081, z);
  sum = product(sum + 14655287, z);
  sum = product(sum + 13737170, z);
  sum = product(sum + 48956991, z);
  sum = product(sum + 161327631, z);
  sum = product(sum + 774541362, z);
  return sum >> vec4<u32>(6u);
}

fn gumbel(random: vec4<u32>) -> vec4<f32> {
  let upper = random >= vec4<u32>(0x80000000u);
  let distance = 2u * select(random, ~random, upper) + 1u;
  let depth = 1107296256 - fixed_log2(distance);
  let noise = select(depth - fixed_curve(distance),
                     856603255 - fixed_log2(bitcast<vec4<u32>>(depth)), upper);
  return vec4<f32>(noise >> vec4<u32>(7u)) * 3.814697265625e-6;
}

fn philox(first_counter: vec4<u32>, first_key: vec2<u32>) -> vec4<u32> {
  const multipliers = vec4<u32>(0xd2511f53u, 0xcd9e8d57u, 0u, 0u);
  var counter = first_counter;
  var key = first_key;
  for (var round = 0; round < 10; round++) {
    let high_words = multiply_high(multipliers, counter.xzxz);
    let low_words = multipliers.xy * counter.xz;
    counter = vec4<u32>(high_words.y ^ counter.y ^ key.x, low_words.y,
                        high_words.x ^ counter.w ^ key.y, low_words.x);
    key += vec2<u32>(0x9e3779b9u, 0xbb67ae85u);
  }
  return counter;
}

fn is_on(filter_index: u32) -> bool {
  if (filter_index == 0u) {
    return settings.top_k != 0u;
  }
  return settings.top_p != 0u;
}

// The digits down to that of a level are key >> shift_of(level).
fn shift_of(level: u32) -> u32 {
  return u32(max(21 - 11 * i32(level), 0));
}

fn histogram_of(row: u32, pass_index: u32) -> u32 {
  return row * STATE_WORDS + HISTOGRAMS + pass_index * 2u * BINS;
}

// Workgroup memory as slots of sums.
fn set_slot(slot: u32, sum: vec2<u32>) {
  atomicStore(&high[slot], sum.x);
  atomicStore(&low[slot], sum.y);
}

fn slot_sum(slot: u32) -> vec2<u32> {
  return vec2<u32>(atomicLoad(&high[slot]), atomicLoad(&low[slot]));
}

fn sum_of_bin(histogram: u32, bin: u32) -> vec2<u32> {
  return normal(vec2<u32>(atomicLoad(&state[histogram + BINS + bin]),
                          atomicLoad(&state[histogram + bin])));
}

struct Found {
  digits: u32,      // so far; after the last level, the lowest key that is kept
  rest: vec2<u32>,  // what is left of the goal for the keys with these digits
}

// Finds the digit at which the histogram of the pass before, summed from the top, reaches its goal.
fn find(row: u32, invocation: u32) -> Found {
  let histogram = histogram_of(row, BEFORE);
  let first_bin = (INVOCATIONS - 1u - invocation) * RUN;  // invocation 0 has the highest bins
  var own = vec2<u32>(0u);
  for (var i = 0u; i < RUN; i++) {
    own = normal(own + sum_of_bin(histogram, first_bin + i));
  }
  var through = own;  // becomes the sum from the top through this run
  for (var reach = 1u; reach < INVOCATIONS; reach *= 2u) {
    set_slot(invocation, through);
    workgroupBarrier();
    if (invocation >= reach) {
      through = normal(through + slot_sum(invocation - reach));
    }
    workgroupBarrier();
  }
  set_slot(invocation, through);
  workgroupBarrier();

  let total = slot_sum(INVOCATIONS - 1u);
  var found = Found(0u, normal(vec2<u32>(0u, settings.top_k)));
  if (BEFORE >= LEVELS) {
    found.rest = portion(total, settings.top_p);
  } else if (!reaches(total, found.rest)) {
    found.rest = total;
  }
  if (BEFORE % LEVELS > 0u) {
    let before = row * STATE_WORDS + FOUND + 3u * BEFORE;
    found.digits = atomicLoad(&state[before]);
    found.rest = vec2<u32>(atomicLoad(&state[before + 1u]), atomicLoad(&state[before + 2u]));
  }
  let goal = found.rest;

  var above = difference(through, own);
  if (reaches(through, goal) && !reaches(above, goal)) {
    var bin = first_bin + RUN - 1u;
    var next = normal(above + sum_of_bin(histogram, bin));
    while (!reaches(next, goal)) {
      bin--;
      above = next;
      next = normal(above + sum_of_bin(histogram, bin));
    }
    set_slot(INVOCATIONS, difference(goal, above));
    set_slot(INVOCATIONS + 1u, vec2<u32>(0u, bin));
  }
  workgroupBarrier();
  found.rest = slot_sum(INVOCATIONS);
  found.digits = (found.digits << select(11u, 10u, BEFORE % LEVELS == LEVELS - 1u)) |
                 slot_sum(INVOCATIONS + 1u).y;
  workgroupBarrier();  // the slots are free again
  return found;
}

// Adds the tile's keys to the row's histogram: those that are kept so far and have the digits found
// so far, each with its count of 1 or its probability.
fn count(row: u32, first_quad: u32, invocation: u32, floor_key: u32, digits: u32) {
  for (var bin = invocation; bin < BINS; bin += INVOCATIONS) {
    set_slot(bin, vec2<u32>(0u));
  }
  workgroupBarrier();
  for (var quad = 0u; quad < QUADS; quad++) {
    let quad_keys = keys[first_quad + quad * INVOCATIONS];
    var amounts = vec4<u32>(1u);
    if (PASS >= LEVELS) {
      amounts = powers_of_2(below_maximum(row, quad_keys));
    }
    let digits_above = quad_keys >> vec4<u32>(shift_of(max(LEVEL, 1u) - 1u));
    let counted = (quad_keys >= vec4<u32>(floor_key)) &
                  ((digits_above == vec4<u32>(digits)) | vec4<bool>(LEVEL == 0u));
    let bins = (quad_keys >> vec4<u32>(shift_of(LEVEL))) &
               vec4<u32>(select(0x7ffu, 0x3ffu, LEVEL == LEVELS - 1u));
    for (var i = 0u; i < 4u; i++) {
      if (counted[i]) {
        atomicAdd(&low[bins[i]], amounts[i] & LIMB_MASK);
        atomicAdd(&high[bins[i]], amounts[i] >> LIMB);
      }
    }
  }
  workgroupBarrier();
  let histogram = histogram_of(row, PASS);
  for (var bin = invocation; bin < BINS; bin += INVOCATIONS) {
    let sum = normal(slot_sum(bin));
    if (any(sum != vec2<u32>(0u))) {
      atomicAdd(&state[histogram + bin], sum.y);
      atomicAdd(&state[histogram + BINS + bin], sum.x);
    }
  }
}

// What each key of a quad competes with: 0 if it is not kept.
fn candidates_of(row: u32, column: u32, quad_keys: vec4<u32>, floor_key: u32) -> vec4<u32> {
  if (PASS == 0u || settings.greedy != 0u) {
    return quad_keys;
  }
  let values = below_maximum(row, quad_keys);
  let kept = (quad_keys >= vec4<u32>(floor_key)) & (values >= vec4<f32>(settings.min_p));
  if (!any(kept)) {
    return vec4<u32>(0u);
  }
  let noise = gumbel(philox(vec4<u32>(column / 4u, step.position + row, 0u, 0u), settings.seed));
  return select(vec4<u32>(0u), keys_of(values + noise), kept);
}

// The best candidate of the tile, and its column: of equals, the lowest.
fn best(row: u32, first_quad: u32, tile: u32, invocation: u32, floor_key: u32) -> vec2<u32> {
  var own = vec2<u32>(0u);
  for (var quad = 0u; quad < QUADS; quad++) {
    let column = tile * TILE + 4u * (quad * INVOCATIONS + invocation);
    let candidates = candidates_of(row, column, keys[first_quad + quad * INVOCATIONS], floor_key);
    for (var i = 0u; i < 4u; i++) {
      if (candidates[i] > own.x) {
        own = vec2<u32>(candidates[i], column + i);
      }
    }
  }
  if (invocation == 0u) {
    set_slot(0u, vec2<u32>(0u));
  }
  workgroupBarrier();
  atomicMax(&high[0], own.x);
  workgroupBarrier();
  let largest = atomicLoad(&high[0]);
  if (own.x == largest) {
    atomicMax(&low[0], ~own.y);
  }
  workgroupBarrier();
  return vec2<u32>(largest, ~atomicLoad(&low[0]));
}

@compute @workgroup_size(INVOCATIONS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) invocation: u32) {
  let index = group.x + group.y * groups.x;
  let row = index / TILES;
  let tile = index % TILES;
  let greedy = settings.greedy != 0u;
  if (row >= step.rows || (greedy && PASS < DRAW)) {
    return;
  }
  let first_quad = index * QUADS * INVOCATIONS + invocation;
  let base = row * STATE_WORDS;
  let reports = tile == 0u && invocation == 0u;

  if (PASS == 0u) {
    let largest = best(row, first_quad, tile, invocation, LOWEST_KEY);
    if (invocation == 0u) {
      atomicMax(&state[base + MAXIMUM], largest.x);
    }
    workgroupBarrier();
  }

  var found = Found(0u, vec2<u32>(0u));
  if (PASS > 0u && !greedy && is_on(BEFORE / LEVELS)) {
    found = find(row, invocation);
    if (reports) {
      atomicStore(&state[base + FOUND + 3u * PASS], found.digits);
      atomicStore(&state[base + FOUND + 3u * PASS + 1u], found.rest.x);
      atomicStore(&state[base + FOUND + 3u * PASS + 2u], found.rest.y);
    }
  }

  var floor_key = LOWEST_KEY;
  if (PASS > LEVELS) {
    floor_key = max(floor_key, atomicLoad(&state[base + TOP_K_FLOOR]));
  }
  if (PASS % LEVELS == 0u) {
    floor_key = max(floor_key, found.digits);
  }
  if (PASS == LEVELS && reports) {
    atomicStore(&state[base + TOP_K_FLOOR], floor_key);
  }

  if (PASS < DRAW) {
    if (is_on(PASS / LEVELS)) {
      count(row, first_quad, invocation, floor_key, found.digits);
    }
    return;
  }
  let chosen = best(row, first_quad, tile, invocation, floor_key);
  if (invocation == 0u) {
    partials[index] = chosen;
  }
}
