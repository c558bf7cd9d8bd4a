// The gate of the per-layer input before the MLP's branch is added (per_layer_gate.h): with
//   s = 1 / sqrt(mean(delta[row]^2) + EPSILON)
//   y[row][o] = gelu((W h[row])[o] + s (W (delta[row] * weight))[o]) * times[row][o]
//   weights, scales  planes of W [ROWS, COLUMNS] (spec/layout.h); f16, f32: scales is not used
//   sum[row] = h[row] + s delta[row] * weight
//   h, delta and sum [rows][COLUMNS], weight [COLUMNS], times and y [rows][ROWS]
// LANES invocations take the pieces of four weight rows in turn; a tree in workgroup memory adds up
// their products and the squares of delta. One workgroup computes 4 WORKGROUP / LANES weight rows
// for one row, and its share of the sum.
// Limits: LANES and WORKGROUP are powers of two, LANES <= WORKGROUP, 64 <= WORKGROUP <= 256; COLUMNS % 32 == 0.

//#include step.wgsl
//#include gelu.wgsl
//#include weight_pieces.wgsl
//#include lane_order.wgsl

override TYPE: u32;
override ROWS: u32;
override COLUMNS: u32;
override LANES: u32;
override WORKGROUP: u32;
override EPSILON: f32;

override AHEAD = 1u;
const WORDS = 1u;
const X_IN_LANES = false;

@group(0) @binding(0) var<uniform> step: Step;
@group(0) @binding(1) var<storage, read> weights: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> scales: array<u32>;
@group(0) @binding(3) var<storage, read> h: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read> delta: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read> weight: array<vec4<f32>>;
@group(0) @binding(6) var<storage, read> times: array<f32>;
@group(0) @binding(7) var<storage, read_write> sum: array<vec4<f32>>;
@group(0) @binding(8) var<storage, read_write> y: array<f32>;

// Of the lanes: the products with h, those with the weighted delta, and delta's squares.
var<workgroup> h_sums: array<vec4<f32>, WORKGROUP>;
var<workgroup> delta_sums: array<vec4<f32>, WORKGROUP>;
var<workgroup> squares: array<f32, WORKGROUP>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>,
        @builtin(num_workgroups) workgroups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let rows_per_group = 4u * WORKGROUP / LANES;
  let groups = (ROWS + rows_per_group - 1u) / rows_per_group;
  let index = workgroup.x + workgroup.y * workgroups.x;
  let row = index / groups;
  if (row >= step.rows) {
    return;
  }
  let part = index % groups;
  let first_row = part * rows_per_group;
  let lane = local % LANES;
  let rows = min(vec4<u32>(first_row + local / LANES * 4u) + vec4<u32>(0u, 1u, 2u, 3u),
                 vec4<u32>(ROWS - 1u));
  let base = row * (COLUMNS / 4u);

  // Read before the sums are there.
  var factors = array<f32, 4>();
  for (var k = 0u; k < 4u; k++) {
    let output = local + k * WORKGROUP;
    if (output < rows_per_group && first_row + output < ROWS) {
      factors[k] = times[row * ROWS + first_row + output];
    }
  }

  var h_sum = vec4<f32>();
  var delta_sum = vec4<f32>();
  var square = vec4<f32>();
  for (var turn = 0u; turn < PIECES; turn += LANES) {
    let piece = turn + lane;
    let ahead = read_ahead(rows, piece);
    let quads = piece_quads(piece, 0u);
    let a = delta[base + quads.x];
    let b = delta[base + quads.y];
    let w = piece_weights(ahead, rows, piece);
    let scale = turn_scale(ahead, rows, piece);
    let none = vec4<f32>();
    h_sum = fma(scale, piece_product(w, h[base + quads.x], h[base + quads.y], none), h_sum);
    delta_sum = fma(
        scale, piece_product(w, a * weight[quads.x], b * weight[quads.y], none), delta_sum);
    if (piece < PIECES) {
      square = fma(a, a, fma(b, b, square));
    }
  }
  h_sums[local] = h_sum;
  delta_sums[local] = delta_sum;
  squares[local] = (square.x + square.y) + (square.z + square.w);
  // Four sums become one in each turn.
  for (var left = LANES; left > 1u; left /= 4u) {
    let distance = max(left / 4u, 1u);
    workgroupBarrier();
    if (lane < distance) {
      var h_total = h_sums[local] + h_sums[local + distance];
      var delta_total = delta_sums[local] + delta_sums[local + distance];
      var total = squares[local] + squares[local + distance];
      if (left > 2u) {
        h_total += h_sums[local + 2u * distance] + h_sums[local + 3u * distance];
        delta_total += delta_sums[local + 2u * distance] + delta_sums[local + 3u * distance];
        total += squares[local + 2u * distance] + squares[local + 3u * distance];
      }
      h_sums[local] = h_total;
      delta_sums[local] = delta_total;
      squares[local] = total;
    }
  }
  workgroupBarrier();

  let own_scale = inverseSqrt(squares[0] / f32(COLUMNS) + EPSILON);
  for (var quad = part + groups * local; quad < COLUMNS / 4u; quad += groups * WORKGROUP) {
    let at = base + quad;
    sum[at] = fma(delta[at] * weight[quad], vec4<f32>(own_scale), h[at]);
  }
  for (var k = 0u; k < 4u; k++) {
    let i = local + k * WORKGROUP;
    if (i < rows_per_group && first_row + i < ROWS) {
      let at = i / 4u * LANES;
      let scale = inverseSqrt(squares[at] / f32(COLUMNS) + EPSILON);
      let v = fma(delta_sums[at][i % 4u], scale, h_sums[at][i % 4u]);
      y[row * ROWS + first_row + i] = gelu(v) * factors[k];
    }
  }
}
