// First stage of the argmax: the best column of each tile of TILE columns of a row.
// Shapes: logits [rows][COLUMNS], partials [rows][tiles] of (ordered value, column). One workgroup
// computes one tile of one row. Limits: any COLUMNS; logits are finite.
// All comparisons are of integers, so the result does not depend on their order.
//#if subgroups
enable subgroups;
//#end

struct Step {
  position: u32,
  rows: u32,
  remaining: u32,
  rounds: u32,
  token: u32,
  stop: u32,
  reserved: vec2<u32>,
}

override COLUMNS: u32;
override TILE: u32;

const INVOCATIONS = 256u;

override TILES = (COLUMNS + TILE - 1u) / TILE;

@group(0) @binding(0) var<uniform> step: Step;
@group(0) @binding(1) var<storage, read> logits: array<f32>;
@group(0) @binding(2) var<storage, read_write> partials: array<vec2<u32>>;

var<workgroup> best_value: atomic<u32>;
var<workgroup> best_inverse: atomic<u32>;  // ~column: the largest is the lowest column

// Maps floats to integers above 0 of the same order; -0.0 and 0.0 are equal.
fn ordered(value: f32) -> u32 {
  let bits = bitcast<u32>(value);
  if (bits > 0x80000000u) {
    return ~bits;
  }
  return (bits & 0x7fffffffu) | 0x80000000u;
}

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
  var column = 0u;
  let end = min(COLUMNS, (tile + 1u) * TILE);
  for (var c = tile * TILE + invocation; c < end; c += INVOCATIONS) {
    let candidate = ordered(logits[row * COLUMNS + c]);
    if (candidate > value) {
      value = candidate;
      column = c;
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
    atomicMax(&best_inverse, ~column);
  }
  workgroupBarrier();
  if (invocation == 0u) {
    partials[index] = vec2<u32>(best, ~atomicLoad(&best_inverse));
  }
}
