// Matrix product for few rows, with its epilogue (linear.h): M = 1 is the route `one`, M = 4 the
// route `few`.
//   weights, scales  planes of [ROWS, COLUMNS] (spec/layout.h); f16, f32: scales is not used
//   x [rows][COLUMNS], times and y [rows][Y_STRIDE], from element Y_OFFSET on
// One workgroup computes WORKGROUP / LANES weight rows for all rows of x. The LANES invocations of a
// weight row take its units of 32 columns in turn, each summing in f32; a tree in workgroup memory
// adds the lanes up. Nothing of this order depends on M or on the live rows, so that a row has the
// same bits in both routes.
// Limits: LANES and WORKGROUP are powers of two, LANES <= WORKGROUP <= 256; COLUMNS % 4 == 0, f16:
// % 8; gelu_pair: ROWS is even and 2 * LANES <= WORKGROUP.

//#include step.wgsl
//#include weight_units.wgsl

override TYPE: u32;
override EPILOGUE: u32;
override M: u32;
override ROWS: u32;
override COLUMNS: u32;
override LANES: u32;
override WORKGROUP: u32;
override Y_STRIDE: u32;
override Y_OFFSET: u32;
override SOFTCAP: f32;

// EPILOGUE
const gelu_pair = 1u;
const gelu_times = 2u;
const softcap = 3u;

@group(0) @binding(0) var<uniform> step: Step;
@group(0) @binding(1) var<storage, read> weights: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> scales: array<u32>;
@group(0) @binding(3) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read> times: array<f32>;
@group(0) @binding(5) var<storage, read_write> y: array<f32>;

// The lanes' sums, one component for each row of x.
var<workgroup> sums: array<vec4<f32>, WORKGROUP>;

// The product with 32 elements of x from x[quad] on. Written out, since an array that is indexed by
// a variable may not stay in registers.
fn unit_product(w: Unit, quad: u32) -> vec4<f32> {
  var sum = w[0] * x[quad];
  sum = fma(w[1], x[quad + 1u], sum);
  sum = fma(w[2], x[quad + 2u], sum);
  sum = fma(w[3], x[quad + 3u], sum);
  sum = fma(w[4], x[quad + 4u], sum);
  sum = fma(w[5], x[quad + 5u], sum);
  sum = fma(w[6], x[quad + 6u], sum);
  return fma(w[7], x[quad + 7u], sum);
}

fn total(v: vec4<f32>) -> f32 {
  return (v.x + v.y) + (v.z + v.w);
}

// What is not finite stays so, for the host to notice: a clamp would hide it.
fn capped(v: f32) -> f32 {
  if ((bitcast<u32>(v) & 0x7f800000u) == 0x7f800000u) {
    return v;
  }
  return SOFTCAP * tanh(clamp(v / SOFTCAP, -15.0, 15.0));
}

// Beyond +-8 gelu(v) is v or 0 in f32. The clamp keeps tanh's argument where no implementation
// overflows.
fn gelu(v: f32) -> f32 {
  let c = clamp(v, -8.0, 8.0);
  return 0.5 * v * (1.0 + tanh(0.7978845608 * (c + 0.044715 * c * c * c)));
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>,
        @builtin(num_workgroups) workgroups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let rows_per_group = WORKGROUP / LANES;
  let first_row = (workgroup.x + workgroup.y * workgroups.x) * rows_per_group;
  if (first_row >= ROWS || step.rows == 0u) {
    return;
  }
  let lane = local % LANES;
  let row = min(first_row + local / LANES, ROWS - 1u);
  // Where the rows of x begin; those that are not live repeat the last one.
  let x_rows = min(vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(step.rows - 1u)) * (COLUMNS / 4u);

  var sum0 = vec4<f32>();
  var sum1 = vec4<f32>();
  var sum2 = vec4<f32>();
  var sum3 = vec4<f32>();
  for (var unit = lane; unit < COLUMNS / 32u; unit += LANES) {
    let w = unit_weights(row, unit);
    let scale = unit_scale(row, unit);
    let quads = x_rows + 8u * unit;
    sum0 = fma(scale, unit_product(w, quads.x), sum0);
    if (M > 1u) {
      sum1 = fma(scale, unit_product(w, quads.y), sum1);
      sum2 = fma(scale, unit_product(w, quads.z), sum2);
      sum3 = fma(scale, unit_product(w, quads.w), sum3);
    }
  }
  // Float rows may end in a part of a unit.
  for (var quad = COLUMNS / 32u * 8u + lane; quad < COLUMNS / 4u; quad += LANES) {
    let w = floats(row * COLUMNS + 4u * quad);
    let quads = x_rows + quad;
    sum0 = fma(w, x[quads.x], sum0);
    if (M > 1u) {
      sum1 = fma(w, x[quads.y], sum1);
      sum2 = fma(w, x[quads.z], sum2);
      sum3 = fma(w, x[quads.w], sum3);
    }
  }

  sums[local] = vec4<f32>(total(sum0), total(sum1), total(sum2), total(sum3));
  for (var distance = LANES / 2u; distance > 0u; distance /= 2u) {
    workgroupBarrier();
    if (lane < distance) {
      sums[local] = sums[local] + sums[local + distance];
    }
  }
  workgroupBarrier();

  let rows_per_output = select(1u, 2u, EPILOGUE == gelu_pair);
  let outputs = rows_per_group / rows_per_output;
  for (var i = local; i < outputs * M; i += WORKGROUP) {
    let m = i / outputs;
    let output = first_row / rows_per_output + i % outputs;
    if (m >= step.rows || output >= ROWS / rows_per_output) {
      continue;
    }
    let first_lane = i % outputs * rows_per_output * LANES;
    let v = sums[first_lane][m];
    let to = m * Y_STRIDE + Y_OFFSET + output;
    if (EPILOGUE == gelu_pair) {
      y[to] = gelu(v) * sums[first_lane + LANES][m];
    } else if (EPILOGUE == gelu_times) {
      y[to] = gelu(v) * times[to];
    } else if (EPILOGUE == softcap) {
      y[to] = capped(v);
    } else {
      y[to] = v;
    }
  }
}
