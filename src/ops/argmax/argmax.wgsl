// First stage of the argmax: the best logit of each tile of TILE columns of a row; of equals, the
// lowest index. A single tile is the whole row, and its best index the result.
// Shapes: logits [rows][COLUMNS], partials [rows][tiles] of (ordered value, index), best_index [rows].
// One workgroup computes one tile of one row. Limits: any COLUMNS; logits are finite.
// All comparisons are of integers, so the result does not depend on their order.

//#include step.wgsl
//#include ordered.wgsl

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

var<workgroup> best_value: atomic<u32>;
var<workgroup> best_inverse: atomic<u32>;  // ~index: the largest is the lowest index

@compute @workgroup_size(INVOCATIONS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) invocation: u32) {
  let index = group.x + group.y * groups.x;
  let row = index / TILES;
  let tile = index % TILES;
  if (row >= step.rows) {
    return;
  }

  if (invocation == 0u) {
    atomicStore(&best_value, 0u);
    atomicStore(&best_inverse, 0u);
  }
  workgroupBarrier();

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

  var candidate = value;
  var proposes = true;
//#if subgroups
  candidate = subgroupMax(value);
  proposes = value == candidate;
//#end
  if (proposes) {
    atomicMax(&best_value, candidate);
  }
  workgroupBarrier();
  let best = atomicLoad(&best_value);
  if (value == best) {
    atomicMax(&best_inverse, ~token);
  }
  workgroupBarrier();
  if (invocation != 0u) {
    return;
  }
  let winner = ~atomicLoad(&best_inverse);
  if (TILES == 1u) {
    best_index[row] = winner;
  } else {
    partials[index] = vec2<u32>(best, winner);
  }
}
