// The gate of the per-layer input before the MLP's branch is added (per_layer_gate.h): with
//   s = 1 / sqrt(mean(delta[row]^2) + EPSILON)
//   y[row][o] = gelu((W h[row])[o] + s (W (delta[row] * weight))[o]) * times[row][o]
//   weights, scales  planes of W [ROWS, COLUMNS] (spec/layout.h); f16, f32: scales is not used
//   h and delta [rows][COLUMNS], weight [COLUMNS], times and y [rows][ROWS]
// LANES invocations take the pieces of four weight rows in turn, AHEAD of them read before the first
// is used; a tree in workgroup memory adds up their products and the squares of delta. One workgroup computes 256 / LANES weight rows for one
// row.
// Limits: LANES a power of two up to 64; AHEAD <= 3; COLUMNS % 32 == 0.

//#include step.wgsl
//#include gelu.wgsl
//#include weight_pieces.wgsl
//#include lane_order.wgsl

override TYPE: u32;
override ROWS: u32;
override COLUMNS: u32;
override LANES: u32;
override AHEAD: u32;
override EPSILON: f32;

const X_IN_LANES = false;

const invocations = 64u;

@group(0) @binding(0) var<uniform> step: Step;
@group(0) @binding(1) var<storage, read> weights: array<u32>;
@group(0) @binding(2) var<storage, read> scales: array<u32>;
@group(0) @binding(3) var<storage, read> h: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read> delta: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read> weight: array<vec4<f32>>;
@group(0) @binding(6) var<storage, read> times: array<f32>;
@group(0) @binding(7) var<storage, read_write> y: array<f32>;

// Of the lanes: the products with h, those with the weighted delta, and delta's squares.
var<workgroup> h_sums: array<vec4<f32>, invocations>;
var<workgroup> delta_sums: array<vec4<f32>, invocations>;
var<workgroup> squares: array<f32, invocations>;

// What is read of a piece: of the weights, and the two quads of each row.
struct Taken {
  weights: Ahead,
  h: array<vec4<f32>, 2>,
  delta: array<vec4<f32>, 2>,
  norm: array<vec4<f32>, 2>,
}

struct LaneSums {
  h: vec4<f32>,
  delta: vec4<f32>,
  squares: vec4<f32>,
}

fn take(rows: vec4<u32>, base: u32, piece: u32) -> Taken {
  let quads = piece_quads(piece);
  return Taken(read_ahead(rows, piece), array(h[base + quads.x], h[base + quads.y]),
               array(delta[base + quads.x], delta[base + quads.y]),
               array(weight[quads.x], weight[quads.y]));
}

fn add(before: LaneSums, taken: Taken, rows: vec4<u32>, piece: u32) -> LaneSums {
  let w = piece_weights(taken.weights, rows, piece);
  let scale = piece_scale(taken.weights, rows, piece);
  let a = taken.delta[0];
  let b = taken.delta[1];
  var sum = before;
  sum.h = fma(scale, piece_product(w, taken.h[0], taken.h[1]), sum.h);
  sum.delta = fma(scale, piece_product(w, a * taken.norm[0], b * taken.norm[1]), sum.delta);
  if (piece < PIECES) {
    sum.squares = fma(a, a, fma(b, b, sum.squares));
  }
  return sum;
}

@compute @workgroup_size(invocations)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>,
        @builtin(num_workgroups) workgroups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let rows_per_group = 4u * invocations / LANES;
  let groups = (ROWS + rows_per_group - 1u) / rows_per_group;
  let index = workgroup.x + workgroup.y * workgroups.x;
  let row = index / groups;
  if (row >= step.rows) {
    return;
  }
  let first_row = index % groups * rows_per_group;
  let lane = local % LANES;
  let rows = min(vec4<u32>(first_row + local / LANES * 4u) + vec4<u32>(0u, 1u, 2u, 3u),
                 vec4<u32>(ROWS - 1u));
  let base = row * (COLUMNS / 4u);

  // Read before the sums are there.
  var factors = array<f32, 4>();
  for (var k = 0u; k < 4u; k++) {
    let output = local + k * invocations;
    if (output < rows_per_group && first_row + output < ROWS) {
      factors[k] = times[row * ROWS + first_row + output];
    }
  }

  var sum = LaneSums();
  for (var turn = 0u; turn < PIECES; turn += LANES * AHEAD) {
    let piece = turn + lane;
    let taken0 = take(rows, base, piece);
    var taken1: Taken;
    var taken2: Taken;
    if (AHEAD > 1u) {
      taken1 = take(rows, base, piece + LANES);
    }
    if (AHEAD > 2u) {
      taken2 = take(rows, base, piece + 2u * LANES);
    }
    sum = add(sum, taken0, rows, piece);
    if (AHEAD > 1u) {
      sum = add(sum, taken1, rows, piece + LANES);
    }
    if (AHEAD > 2u) {
      sum = add(sum, taken2, rows, piece + 2u * LANES);
    }
  }
  h_sums[local] = sum.h;
  delta_sums[local] = sum.delta;
  squares[local] = (sum.squares.x + sum.squares.y) + (sum.squares.z + sum.squares.w);
  // Four sums become one in each turn.
  for (var left = LANES; left > 1u; left /= 4u) {
    let distance = max(left / 4u, 1u);
    workgroupBarrier();
    if (lane < distance) {
      for (var other = distance; other < left; other += distance) {
        h_sums[local] += h_sums[local + other];
        delta_sums[local] += delta_sums[local + other];
        squares[local] += squares[local + other];
      }
    }
  }
  workgroupBarrier();

  for (var k = 0u; k < 4u; k++) {
    let i = local + k * invocations;
    if (i < rows_per_group && first_row + i < ROWS) {
      let at = i / 4u * LANES;
      let scale = inverseSqrt(squares[at] / f32(COLUMNS) + EPSILON);
      let v = fma(delta_sums[at][i % 4u], scale, h_sums[at][i % 4u]);
      y[row * ROWS + first_row + i] = gelu(v) * factors[k];
    }
  }
}
