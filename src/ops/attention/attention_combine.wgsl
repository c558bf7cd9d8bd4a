// Combines the splits of one row and head: y = sum of totals / sum of weights, each scaled to the
// largest score of all splits.
// Shapes: partials [rows][HEADS][SPLITS][HEAD_DIM + 2] as attention.wgsl writes them, y
// [rows][HEADS][HEAD_DIM]. One workgroup computes one head of one row.
// Limits: HEAD_DIM even and at most 2 * INVOCATIONS. WINDOW, LAG and TILE as in attention.wgsl.

//#include step.wgsl

override HEADS: u32;
override HEAD_DIM: u32;
override WINDOW: u32;
override LAG: u32;
override TILE: u32;
override SPLITS: u32;
override INVOCATIONS: u32;

const LOWEST = -3.0e38;

override PAIRS = HEAD_DIM / 2u;

@group(0) @binding(0) var<uniform> step: Step;
@group(0) @binding(1) var<storage, read> partials: array<vec2<f32>>;
@group(0) @binding(2) var<storage, read_write> y: array<vec2<f32>>;

fn weight(difference: f32) -> f32 {
  return exp(clamp(difference, -80.0, 0.0));
}

@compute @workgroup_size(INVOCATIONS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) invocation: u32) {
  let head = group.x + group.y * groups.x;
  let row = head / HEADS;
  if (row >= step.rows || invocation >= PAIRS) {
    return;
  }
  let position = max(step.position + row, LAG) - LAG;
  let begin = select(0u, position + 1u - min(position + 1u, WINDOW), WINDOW > 0u);
  let splits = min(position / TILE + 1u - begin / TILE, SPLITS);

  let base = head * SPLITS * (PAIRS + 1u);
  var maximum = LOWEST;
  for (var split = 0u; split < splits; split++) {
    maximum = max(maximum, partials[base + split * (PAIRS + 1u) + PAIRS].x);
  }
  var total = vec2<f32>(0.0);
  var weight_sum = 0.0;
  for (var split = 0u; split < splits; split++) {
    let at = base + split * (PAIRS + 1u);
    let state = partials[at + PAIRS];
    let split_weight = weight(state.x - maximum);
    total += split_weight * partials[at + invocation];
    weight_sum += split_weight * state.y;
  }
  y[head * PAIRS + invocation] = total / weight_sum;
}
