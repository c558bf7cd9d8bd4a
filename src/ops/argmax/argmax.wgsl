// First stage of the argmax: the best logit of each tile of TILE columns of a row; of equals, the
// lowest index. A single tile is the whole row, and its best index the result.
// Shapes: logits [rows][COLUMNS], partials [rows][tiles] of (ordered value, index), best_index [rows].
// One workgroup computes one tile of one row. Limits: any COLUMNS; logits are finite.
// All comparisons are of integers, so the result does not depend on their order.

//#include step.wgsl
//#include ordered.wgsl
//#include best_of_workgroup.wgsl

//#if subgroups
enable subgroups;
//#end

override COLUMNS: u32;
override TILE: u32;

const INVOCATIONS = 256u;

override TILES = (COLUMNS + TILE - 1u) / TILE;

@group(0) @binding(0) var<uniform> step: Step;
@group(0) @binding(1) var<storage, read> logits: array<f32>;
@group(0) @binding(2) var<storage, read_write> partials: array<vec2<u32>>;
@group(0) @binding(3) var<storage, read_write> best_index: array<u32>;

@compute @workgroup_size(INVOCATIONS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) invocation: u32) {
  let index = group.x + group.y * groups.x;
  let row = index / TILES;
  let tile = index % TILES;
  if (row >= step.rows) {
    return;
  }

  var value = 0u;
  var token = 0u;
  let end = min(COLUMNS, (tile + 1u) * TILE);
  for (var c = tile * TILE + invocation; c < end; c += INVOCATIONS) {
    let candidate = ordered(logits[row * COLUMNS + c]);
    if (candidate > value) {
      value = candidate;
      token = c;
    }
  }

  var proposes = true;
//#if subgroups
  proposes = value == subgroupMax(value);
//#end
  let best = best_of_workgroup(Best(value, token), proposes, invocation);
  if (invocation != 0u) {
    return;
  }
  if (TILES == 1u) {
    best_index[row] = best.token;
  } else {
    partials[index] = vec2<u32>(best.value, best.token);
  }
}
