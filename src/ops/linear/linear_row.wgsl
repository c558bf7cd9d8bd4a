// Matrix product for few rows, with its epilogue (linear.h): M = 1 is the route `one`, M = 4 the
// route `few`.
//   weights, scales  planes of [ROWS, COLUMNS] (spec/layout.h); f16, f32: scales is not used
//   x [rows][COLUMNS], times and y [rows][Y_STRIDE], from element Y_OFFSET on
// One workgroup computes WORKGROUP / LANES weight rows for all rows of x. The LANES invocations of a
// weight row take its units of 32 columns in turn, each summing in f32; a tree in workgroup memory
// adds the lanes up. Nothing of this order depends on M or on the live rows, so that a row has the
// same bits in both routes.
// Limits: LANES and WORKGROUP are powers of two, LANES <= WORKGROUP <= 256, COLUMNS % 4 == 0;
// gelu_pair: ROWS is even and 2 * LANES <= WORKGROUP.

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

// TYPE
const q4_0 = 0u;
const q8_0 = 1u;
const halves = 2u;
// EPILOGUE
const gelu_pair = 1u;
const gelu_times = 2u;
const softcap = 3u;

struct Step {
  position: u32,
  rows: u32,
  remaining: u32,
  rounds: u32,
  token: u32,
  stop: u32,
  reserved: vec2<u32>,
}

@group(0) @binding(0) var<uniform> step: Step;
@group(0) @binding(1) var<storage, read> weights: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> scales: array<u32>;
@group(0) @binding(3) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read> times: array<f32>;
@group(0) @binding(5) var<storage, read_write> y: array<f32>;

// The lanes' sums: [M][WORKGROUP].
var<workgroup> sums: array<f32, 1024>;

const bytes = vec4<u32>(0u, 8u, 16u, 24u);

fn unsigned_bytes(word: u32) -> vec4<f32> {
  return vec4<f32>((vec4<u32>(word) >> bytes) & vec4<u32>(255u));
}

fn signed_bytes(word: u32) -> vec4<f32> {
  return vec4<f32>(vec4<i32>(vec4<u32>(word) << (vec4<u32>(24u) - bytes)) >> vec4<u32>(24u));
}

fn low_nibbles(word: u32) -> vec4<f32> {
  return unsigned_bytes(word & 0x0f0f0f0fu) - vec4<f32>(8.0);
}

// Four float weights from element `index` of the plane, a multiple of 4.
fn floats(index: u32) -> vec4<f32> {
  if (TYPE == halves) {
    let words = weights[index / 8u];
    let pair = select(words.xy, words.zw, (index & 4u) != 0u);
    return vec4<f32>(unpack2x16float(pair.x), unpack2x16float(pair.y));
  }
  return bitcast<vec4<f32>>(weights[index / 4u]);
}

// The weights of a unit without their scale, four columns each; zeros beyond the last column.
fn unit_weights(row: u32, unit: u32) -> array<vec4<f32>, 8> {
  let block = row * (COLUMNS / 32u) + unit;
  if (TYPE == q4_0) {
    let low = weights[block];
    let high = low >> vec4<u32>(4u);
    return array<vec4<f32>, 8>(low_nibbles(low.x), low_nibbles(low.y), low_nibbles(low.z),
                               low_nibbles(low.w), low_nibbles(high.x), low_nibbles(high.y),
                               low_nibbles(high.z), low_nibbles(high.w));
  }
  if (TYPE == q8_0) {
    let first = weights[2u * block];
    let second = weights[2u * block + 1u];
    return array<vec4<f32>, 8>(signed_bytes(first.x), signed_bytes(first.y), signed_bytes(first.z),
                               signed_bytes(first.w), signed_bytes(second.x),
                               signed_bytes(second.y), signed_bytes(second.z),
                               signed_bytes(second.w));
  }
  var result: array<vec4<f32>, 8>;
  for (var k = 0u; k < 8u; k++) {
    let column = 32u * unit + 4u * k;
    if (column < COLUMNS) {
      result[k] = floats(row * COLUMNS + column);
    }
  }
  return result;
}

fn unit_scale(row: u32, unit: u32) -> f32 {
  if (TYPE > q8_0) {
    return 1.0;
  }
  let block = row * (COLUMNS / 32u) + unit;
  let pair = unpack2x16float(scales[block / 2u]);
  return select(pair.x, pair.y, (block & 1u) != 0u);
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
  let x_row_units = COLUMNS / 4u;

  var lane_sums: array<vec4<f32>, 4>;
  for (var unit = lane; unit < (COLUMNS + 31u) / 32u; unit += LANES) {
    let w = unit_weights(row, unit);
    let scale = vec4<f32>(unit_scale(row, unit));
    for (var m = 0u; m < M; m++) {
      // Rows that are not live repeat the last one.
      let x_row = min(m, step.rows - 1u) * x_row_units;
      var sum = vec4<f32>();
      for (var k = 0u; k < 8u; k++) {
        // Past the last column the weight is 0.
        sum = fma(w[k], x[x_row + min(8u * unit + k, x_row_units - 1u)], sum);
      }
      lane_sums[m] = fma(scale, sum, lane_sums[m]);
    }
  }

  for (var m = 0u; m < M; m++) {
    let sum = lane_sums[m];
    sums[m * WORKGROUP + local] = (sum.x + sum.y) + (sum.z + sum.w);
  }
  for (var distance = LANES / 2u; distance > 0u; distance /= 2u) {
    workgroupBarrier();
    if (lane < distance) {
      for (var m = 0u; m < M; m++) {
        let i = m * WORKGROUP + local;
        sums[i] = sums[i] + sums[i + distance];
      }
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
    let sum = m * WORKGROUP + (i % outputs) * rows_per_output * LANES;
    let to = m * Y_STRIDE + Y_OFFSET + output;
    let v = sums[sum];
    if (EPILOGUE == gelu_pair) {
      y[to] = gelu(v) * sums[sum + LANES];
    } else if (EPILOGUE == gelu_times) {
      y[to] = gelu(v) * times[to];
    } else if (EPILOGUE == softcap) {
      y[to] = SOFTCAP * tanh(clamp(v / SOFTCAP, -15.0, 15.0));
    } else {
      y[to] = v;
    }
  }
}
