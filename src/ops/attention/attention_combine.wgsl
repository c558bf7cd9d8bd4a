// Combines the splits of one row and head: y = sum of totals / sum of weights, each scaled to the
// largest score of all splits.
// Shapes: partials [rows][HEADS][SPLITS][HEAD_DIM + 4] as attention_split.wgsl writes them in tiles
// of TILE keys, y [rows][HEADS][HEAD_DIM], with Y_INT8 rows of RowFormat::int8 (op.h). PARTS workgroups compute one head of one row, each a
// part of its quads; the invocations that have the same quad share the splits. Limits: HEAD_DIM a
// multiple of 4 * PARTS, with Y_INT8 of 32 * PARTS, at most 512. WINDOW and LAG as in attention_split.wgsl.

//#include step.wgsl
//#include row_sum.wgsl
//#include int8_units.wgsl
//#include int8_place.wgsl

override HEADS: u32;
override HEAD_DIM: u32;
override WINDOW: u32;
override LAG: u32;
override SPLITS: u32;
override TILE: u32;
override PARTS: u32;
override Y_INT8: bool;

const lowest = -3.0e38;
const most_units = 16u;

override QUADS = HEAD_DIM / 4u;
override PART_QUADS = QUADS / PARTS;
override SHARES = invocations / PART_QUADS;
override COLUMNS = HEADS * HEAD_DIM;

@group(0) @binding(0) var<uniform> step: Step;
@group(0) @binding(1) var<storage, read> partials: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> y: array<u32>;

// What the totals of 256 splits weigh.
var<workgroup> weights: array<f32, invocations>;
// [share][quad of the part]
var<workgroup> totals: array<vec4<f32>, invocations>;

fn weight(difference: f32) -> f32 {
  return exp(clamp(difference, -80.0, 0.0));
}

// Of one of the 256 splits, 0 beyond the last.
fn weight_of(split: u32, count: u32) -> f32 {
  return select(0.0, weights[min(split, count - 1u)], split < count);
}

fn row_max(value: f32, local: u32) -> f32 {
  parts[local] = value;
  workgroupBarrier();
  if (local < 16u) {
    var largest = four_parts(local);
    for (var i = 1u; i < 4u; i++) {
      largest = max(largest, four_parts(64u * i + local));
    }
    sums_of_16[local] = max(max(largest.x, largest.y), max(largest.z, largest.w));
  }
  workgroupBarrier();
  var largest = four_sums_of_16(0u);
  for (var i = 1u; i < 4u; i++) {
    largest = max(largest, four_sums_of_16(4u * i));
  }
  return max(max(largest.x, largest.y), max(largest.z, largest.w));
}

// The part's quads, each of its invocation `local`; it is number `quad` of its row.
fn write_int8(value: vec4<f32>, row: u32, quad: u32, local: u32) {
  let is_own = local < PART_QUADS;
  let base = row * COLUMNS;
  clear_units(most_units, local, invocations);
  workgroupBarrier();
  if (is_own) {
    note_quad(local / 8u, value);
  }
  workgroupBarrier();
  if (is_own) {
    y[base + int8_place(quad, COLUMNS)] = int8_word(local / 8u, value);
  }
  workgroupBarrier();
  if (is_own && local % 8u == 0u) {
    let scale = int8_scale(local / 8u, 1.0);
    let to = base + int8_scale_place(quad / 8u, COLUMNS);
    y[to] = scale.x;
    y[to + 1u] = scale.y;
  }
}

@compute @workgroup_size(invocations)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let index = group.x + group.y * groups.x;
  let head = index / PARTS;
  let row = head / HEADS;
  if (row >= step.rows) {
    return;
  }
  let position = max(step.position + row, LAG) - LAG;
  let begin = select(0u, position + 1u - min(position + 1u, WINDOW), WINDOW > 0u);
  let splits = min(position / TILE + 1u - begin / TILE, SPLITS);
  let base = head * SPLITS * (QUADS + 1u);
  let quad = index % PARTS * PART_QUADS + local % PART_QUADS;
  let share = local / PART_QUADS;

  // The first states and totals are read before the largest score is known.
  var state = vec4<f32>(lowest, 0.0, 0.0, 0.0);
  if (local < splits) {
    state = partials[base + local * (QUADS + 1u) + QUADS];
  }
  let own = min(share, SHARES - 1u);
  let total0 = partials[base + min(own, splits - 1u) * (QUADS + 1u) + quad];
  let total1 = partials[base + min(own + SHARES, splits - 1u) * (QUADS + 1u) + quad];

  var maximum = state.x;
  for (var split = local + invocations; split < splits; split += invocations) {
    maximum = max(maximum, partials[base + split * (QUADS + 1u) + QUADS].x);
  }
  maximum = row_max(maximum, local);

  var total = vec4<f32>();
  var weight_sum = 0.0;
  for (var first = 0u; first < splits; first += invocations) {
    let split = first + local;
    if (first > 0u && split < splits) {
      state = partials[base + split * (QUADS + 1u) + QUADS];
    }
    let of_split = select(0.0, weight(state.x - maximum), split < splits);
    weight_sum = fma(of_split, state.y, weight_sum);
    weights[local] = of_split;
    workgroupBarrier();
    let count = min(splits - first, invocations);
    var begin = own;
    if (first == 0u) {
      total = total0 * weight_of(own, count);
      total = fma(total1, vec4<f32>(weight_of(own + SHARES, count)), total);
      begin += 2u * SHARES;
    }
    // Four at a time, which are read before the first is used.
    for (var i = begin; i < count; i += 4u * SHARES) {
      for (var turn = 0u; turn < 4u; turn++) {
        let wanted = i + turn * SHARES;
        let value = partials[base + (first + min(wanted, count - 1u)) * (QUADS + 1u) + quad];
        total = fma(vec4<f32>(weight_of(wanted, count)), value, total);
      }
    }
    workgroupBarrier();
  }
  weight_sum = row_sum(weight_sum, local);
  totals[local] = total;
  workgroupBarrier();
  if (local < PART_QUADS) {
    for (var i = 1u; i < SHARES; i++) {
      total += totals[i * PART_QUADS + local];
    }
    total /= weight_sum;
    if (!Y_INT8) {
      let to = 4u * (head * QUADS + quad);
      let words = bitcast<vec4<u32>>(total);
      y[to] = words.x;
      y[to + 1u] = words.y;
      y[to + 2u] = words.z;
      y[to + 3u] = words.w;
    }
  }
  if (Y_INT8) {
    write_int8(total, row, head % HEADS * QUADS + quad, local);
  }
}
