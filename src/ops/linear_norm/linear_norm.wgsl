// A residual step and the matrix product of what it yields, for one row (linear_norm.h):
//   h' = (h + b / sqrt(mean(b^2) + EPSILON) * weight) * scalar
//   x = h' / sqrt(mean(h'^2) + EPSILON) * next_weight, in lane order (op.h)
//   y = the product with x as linear_row.wgsl has it
// Each workgroup makes x for itself in workgroup memory, while its first weights are on their way, and
// writes its share of h'.
//   weights, scales  planes of [ROWS, COLUMNS] (spec/layout.h); f16, f32: scales is not used
//   stream  h [COLUMNS], and from element BRANCH on b [COLUMNS]; next_h [COLUMNS]
//   weight and next_weight [COLUMNS]; scalar [1]; y as linear_row.wgsl's, EPILOGUE none or gelu_pair
// Limits: COLUMNS % 32 == 0, COLUMNS <= 2784, BRANCH % 4 == 0; LANES, AHEAD, WORDS and Y_IN_LANES as
// linear_row.wgsl; without SCALED any view may stand in for scalar. 16 KiB of workgroup memory.

//#include step.wgsl
//#include gelu.wgsl
//#include row_sum.wgsl
//#include residual_row.wgsl
//#include residual_share.wgsl
//#include lane_sums.wgsl
//#include row_outputs.wgsl
//#include weight_pieces.wgsl
//#include lane_order.wgsl
//#include float_sums.wgsl

override TYPE: u32;
override EPILOGUE: u32;
override ROWS: u32;
override COLUMNS: u32;
override LANES: u32;
override AHEAD: u32;
override WORDS: u32;
override Y_STRIDE: u32;
override Y_IN_LANES: bool;
override EPSILON: f32;
override SCALED: bool;
override BRANCH: u32;

const X_IN_LANES = true;
const Y_OFFSET = 0u;
const gelu_pair = 1u;  // EPILOGUE

@group(0) @binding(0) var<uniform> step: Step;
@group(0) @binding(1) var<storage, read> weights: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> scales: array<u32>;
@group(0) @binding(3) var<storage, read> stream: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read> weight: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read> scalar: array<f32>;
@group(0) @binding(6) var<storage, read> next_weight: array<vec4<f32>>;
@group(0) @binding(7) var<storage, read_write> next_h: array<vec4<f32>>;
@group(0) @binding(8) var<storage, read_write> y: array<f32>;

var<workgroup> x: array<vec4<f32>, QUADS>;

fn x_quad(at: u32) -> vec4<f32> {
  return x[at];
}

fn await_x(local: u32) {
  let residual = own_residual(local);
  let scale = norm_scale(row_sum(residual.square, local));
  for (var k = 0u; k < KEPT; k++) {
    let quad = k * WORKGROUP + local;
    if (quad < QUADS) {
      x[lane_order(quad, COLUMNS)] = residual.next[k] * scale;
    }
  }
  workgroupBarrier();
}

fn finish(v: f32, to: u32) -> f32 {
  return v;
}

fn write(row: u32, column: u32, value: f32) {
  let place = 4u * lane_order(column / 4u, Y_STRIDE) + column % 4u;
  y[row + select(column, place, Y_IN_LANES)] = value;
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>,
        @builtin(num_workgroups) workgroups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let index = workgroup.x + workgroup.y * workgroups.x;
  let first_row = index * ROWS_PER_GROUP;
  if (first_row >= ROWS || step.rows == 0u) {
    return;
  }
  group = index;
  let rows = lane_rows(first_row, local);
  add_lanes(lane_products(rows, vec4<u32>(), local % LANES, local), local);
  write_outputs(first_row, local);
}
