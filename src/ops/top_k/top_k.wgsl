// The K largest values of each part of a row and where they are, from the largest on; of equals, the
// first.
// Shapes: x and, FROM_PARTIALS, x_indices [rows][COLUMNS]; values and indices [rows][parts][K], the
// parts being of PART columns. FROM_PARTIALS x_indices says which column a value is of; otherwise any
// view may stand in for it.
// One workgroup takes one part. Each of K rounds takes the largest value left: every invocation
// proposes the best of its own, and all together look for the next of the one that owns the winner.
// A part of fewer than K values fills up with the lowest float. Limits: K <= 64; values are finite.
// All comparisons are of integers.

//#include step.wgsl
//#include ordered.wgsl

override COLUMNS: u32;
override PART: u32;
override K: u32;
override FROM_PARTIALS: bool;

const INVOCATIONS = 64u;
const LOWEST = -3.4028234e38;

override PARTS = (COLUMNS + PART - 1u) / PART;

@group(0) @binding(0) var<uniform> step: Step;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read> x_indices: array<u32>;
@group(0) @binding(3) var<storage, read_write> values: array<f32>;
@group(0) @binding(4) var<storage, read_write> indices: array<u32>;

// Of each round: the winner, and the next of the one that owns it; a key of 0 is none.
var<workgroup> best_key: array<atomic<u32>, K>;
var<workgroup> best_inverse: array<atomic<u32>, K>;  // ~column: the largest is the first
var<workgroup> next_key: array<atomic<u32>, K>;
var<workgroup> next_inverse: array<atomic<u32>, K>;

// A value as it competes: its key, 0 for none, and its column.
struct Candidate {
  key: u32,
  column: u32,
}

// The best of columns first, first + stride, ... below end that come after `taken`.
fn best_of(base: u32, first: u32, stride: u32, end: u32, taken: Candidate) -> Candidate {
  var best = Candidate(0u, 0u);
  for (var column = first; column < end; column += stride) {
    let key = ordered(x[base + column]);
    let is_left = key < taken.key || (key == taken.key && column > taken.column);
    if (is_left && key > best.key) {
      best = Candidate(key, column);
    }
  }
  return best;
}

@compute @workgroup_size(INVOCATIONS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) invocation: u32) {
  let index = group.x + group.y * groups.x;
  let row = index / PARTS;
  let part = index % PARTS;
  if (row >= step.rows) {
    return;
  }
  if (invocation < K) {
    atomicStore(&best_key[invocation], 0u);
    atomicStore(&best_inverse[invocation], 0u);
    atomicStore(&next_key[invocation], 0u);
    atomicStore(&next_inverse[invocation], 0u);
  }
  workgroupBarrier();

  let base = row * COLUMNS;
  let begin = part * PART;
  let end = min(COLUMNS, begin + PART);
  var own = best_of(base, begin + invocation, INVOCATIONS, end, Candidate(0xffffffffu, 0u));
  for (var round = 0u; round < K; round++) {
    atomicMax(&best_key[round], own.key);
    workgroupBarrier();
    let key = atomicLoad(&best_key[round]);
    if (own.key == key) {
      atomicMax(&best_inverse[round], ~own.column);
    }
    workgroupBarrier();
    let taken = Candidate(key, ~atomicLoad(&best_inverse[round]));
    let owner = (taken.column - begin) % INVOCATIONS;
    let next = best_of(base, begin + owner + invocation * INVOCATIONS, INVOCATIONS * INVOCATIONS,
                       end, taken);
    if (next.key != 0u) {
      atomicMax(&next_key[round], next.key);
    }
    workgroupBarrier();
    if (next.key != 0u && next.key == atomicLoad(&next_key[round])) {
      atomicMax(&next_inverse[round], ~next.column);
    }
    workgroupBarrier();
    if (invocation == owner) {
      own = Candidate(atomicLoad(&next_key[round]), ~atomicLoad(&next_inverse[round]));
    }
  }

  if (invocation >= K) {
    return;
  }
  let to = index * K + invocation;
  if (atomicLoad(&best_key[invocation]) == 0u) {
    values[to] = LOWEST;
    indices[to] = 0u;
    return;
  }
  let column = ~atomicLoad(&best_inverse[invocation]);
  values[to] = x[base + column];
  if (FROM_PARTIALS) {
    indices[to] = x_indices[base + column];
  } else {
    indices[to] = column;
  }
}
