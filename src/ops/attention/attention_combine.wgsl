// Combines the splits of one row and head: y = sum of totals / sum of weights, each scaled to the
// largest score of all splits.
// Shapes: partials [rows][HEADS][SPLITS][HEAD_DIM + 4] as attention_split.wgsl writes them, y
// [rows][HEADS][HEAD_DIM]. One workgroup computes one head of one row; the invocations that have the
// same four elements share the splits.
// Limits: HEAD_DIM a multiple of 4 and at most 512. WINDOW and LAG as in attention_split.wgsl.

//#include step.wgsl

override HEADS: u32;
override HEAD_DIM: u32;
override WINDOW: u32;
override LAG: u32;
override SPLITS: u32;

const tile = 64u;
const invocations = 256u;
const lowest = -3.0e38;

override QUADS = HEAD_DIM / 4u;
override SHARES = invocations / QUADS;

@group(0) @binding(0) var<uniform> step: Step;
@group(0) @binding(1) var<storage, read> partials: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> y: array<vec4<f32>>;

var<workgroup> maxima: array<f32, invocations>;
// [share][quad]
var<workgroup> totals: array<vec4<f32>, invocations>;
var<workgroup> weight_sums: array<f32, invocations>;

fn weight(difference: f32) -> f32 {
  return exp(clamp(difference, -80.0, 0.0));
}

@compute @workgroup_size(invocations)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let head = group.x + group.y * groups.x;
  let row = head / HEADS;
  if (row >= step.rows) {
    return;
  }
  let position = max(step.position + row, LAG) - LAG;
  let begin = select(0u, position + 1u - min(position + 1u, WINDOW), WINDOW > 0u);
  let splits = min(position / tile + 1u - begin / tile, SPLITS);
  let base = head * SPLITS * (QUADS + 1u);
  let quad = local % QUADS;
  let share = local / QUADS;

  // What a share has seen, to the largest score among its splits.
  var maximum = lowest;
  var total = vec4<f32>();
  var weight_sum = 0.0;
  if (share < SHARES) {
    for (var split = share; split < splits; split += SHARES) {
      maximum = max(maximum, partials[base + split * (QUADS + 1u) + QUADS].x);
    }
    for (var split = share; split < splits; split += SHARES) {
      let at = base + split * (QUADS + 1u);
      let state = partials[at + QUADS];
      let split_weight = weight(state.x - maximum);
      total = fma(vec4<f32>(split_weight), partials[at + quad], total);
      weight_sum = fma(split_weight, state.y, weight_sum);
    }
  }
  maxima[local] = maximum;
  totals[local] = total;
  weight_sums[local] = weight_sum;
  workgroupBarrier();

  if (local >= QUADS) {
    return;
  }
  for (var i = 1u; i < SHARES; i++) {
    maximum = max(maximum, maxima[i * QUADS + local]);
  }
  total = vec4<f32>();
  weight_sum = 0.0;
  for (var i = 0u; i < SHARES; i++) {
    let at = i * QUADS + local;
    let share_weight = weight(maxima[at] - maximum);
    total = fma(vec4<f32>(share_weight), totals[at], total);
    weight_sum = fma(share_weight, weight_sums[at], weight_sum);
  }
  y[head * QUADS + local] = total / weight_sum;
}
