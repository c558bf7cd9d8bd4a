// The K largest of a small product and their rows (linear_top_k.h): of v = W x[row] those that
// fewer than K others go before, which are the larger ones and of equals the ones of lower rows.
//   weights, scales  planes of W [ROWS, COLUMNS] (spec/layout.h); f16, f32: scales is not used
//   x [rows][COLUMNS]; values and indices [rows][K]
// One workgroup computes one row; invocation i has elements 4i .. 4i + 3 of v. Comparisons are of
// integers.
// Limits: ROWS % 4 == 0, K <= ROWS <= 1024; COLUMNS % 32 == 0; LANES a power of two up to 256. 16
// KiB of workgroup memory.

//#include step.wgsl
//#include weight_units.wgsl
//#include row_product.wgsl
//#include ordered.wgsl

override TYPE: u32;
override ROWS: u32;
override COLUMNS: u32;
override LANES: u32;
override K: u32;

@group(0) @binding(0) var<uniform> step: Step;
@group(0) @binding(1) var<storage, read> weights: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> scales: array<u32>;
@group(0) @binding(3) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read_write> values: array<f32>;
@group(0) @binding(5) var<storage, read_write> indices: array<u32>;

// How many elements of v go before one.
fn elements_before(value: f32, element: u32) -> u32 {
  let key = ordered(value);
  var count = 0u;
  for (var quad = 0u; quad < ROWS / 4u; quad++) {
    for (var i = 0u; i < 4u; i++) {
      let other = ordered(product[quad][i]);
      count += select(0u, 1u, other > key || (other == key && 4u * quad + i < element));
    }
  }
  return count;
}

@compute @workgroup_size(invocations)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>,
        @builtin(num_workgroups) workgroups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let row = workgroup.x + workgroup.y * workgroups.x;
  if (row >= step.rows) {
    return;
  }
  multiply(row, 0u, ROWS, local);
  if (local >= ROWS / 4u) {
    return;
  }
  for (var i = 0u; i < 4u; i++) {
    let value = product[local][i];
    let before = elements_before(value, 4u * local + i);
    if (before < K) {
      values[row * K + before] = value;
      indices[row * K + before] = 4u * local + i;
    }
  }
}
