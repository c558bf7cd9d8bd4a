// The K largest values of each part of a row and where they are, from the largest on; of equals, the
// first.
// Shapes: x and, FROM_PARTIALS, x_indices [rows][COLUMNS]; values and indices [rows][parts][K], the
// parts being of PART columns. FROM_PARTIALS x_indices says which column a value is of; otherwise any
// view may stand in for it.
// One workgroup takes one part. Each of K rounds takes the largest value left: every invocation
// proposes its own, and the one that owns the winner looks for its next. A part of fewer than K
// values fills up with the lowest float. Limits: K <= 64; values are finite. All comparisons are of
// integers.

//#include step.wgsl

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

// Of each round.
var<workgroup> best_key: array<atomic<u32>, K>;
var<workgroup> best_inverse: array<atomic<u32>, K>;  // ~column: the largest is the first

// Maps floats to integers above 0 of the same order; -0.0 and 0.0 are equal.
fn ordered(value: f32) -> u32 {
  let bits = bitcast<u32>(value);
  if (bits > 0x80000000u) {
    return ~bits;
  }
  return (bits & 0x7fffffffu) | 0x80000000u;
}

// A value as it competes: its key, 0 for none, and its column.
struct Candidate {
  key: u32,
  column: u32,
}

// The invocation's best of columns first, first + INVOCATIONS, ... below end that come after `taken`.
fn next(base: u32, first: u32, end: u32, taken: Candidate) -> Candidate {
  var best = Candidate(0u, 0u);
  for (var column = first; column < end; column += INVOCATIONS) {
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
  }
  workgroupBarrier();

  let base = row * COLUMNS;
  let first = part * PART + invocation;
  let end = min(COLUMNS, (part + 1u) * PART);
  var own = next(base, first, end, Candidate(0xffffffffu, 0u));
  for (var round = 0u; round < K; round++) {
    atomicMax(&best_key[round], own.key);
    workgroupBarrier();
    let proposes = own.key != 0u && own.key == atomicLoad(&best_key[round]);
    if (proposes) {
      atomicMax(&best_inverse[round], ~own.column);
    }
    workgroupBarrier();
    if (proposes && own.column == ~atomicLoad(&best_inverse[round])) {
      own = next(base, first, end, own);
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
