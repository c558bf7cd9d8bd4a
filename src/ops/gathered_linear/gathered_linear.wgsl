// Product of one row with chosen groups of weight rows (gathered_linear.h).
//   weights, scales  planes of the part of the matrix that begins at row FIRST_ROW and has ROWS rows
//                    of COLUMNS (spec/layout.h); f16, f32: scales is not used
//   x [COLUMNS], chosen [OUTPUTS / GROUP_ROWS], ordering [GROUPS][GROUP_ROWS], y and y_rows [OUTPUTS]
// One workgroup computes WORKGROUP / LANES outputs. The LANES invocations of an output take four
// columns in turn, each summing in f32; a tree in workgroup memory adds the lanes up. Outputs whose
// weight row the part does not own stay as they are.
// Limits: LANES and WORKGROUP are powers of two, LANES <= WORKGROUP <= 256; COLUMNS % 4 == 0, quantized:
// % 32. SOFTCAP 0 is none.

//#include step.wgsl
//#include weight_quads.wgsl

override TYPE: u32;
override FIRST_ROW: u32;
override ROWS: u32;
override COLUMNS: u32;
override GROUPS: u32;
override GROUP_ROWS: u32;
override OUTPUTS: u32;
override SOFTCAP: f32;
override LANES: u32;
override WORKGROUP: u32;

@group(0) @binding(0) var<uniform> step: Step;
@group(0) @binding(1) var<storage, read> weights: array<u32>;
@group(0) @binding(2) var<storage, read> scales: array<u32>;
@group(0) @binding(3) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read> chosen: array<u32>;
@group(0) @binding(5) var<storage, read> ordering: array<u32>;
@group(0) @binding(6) var<storage, read_write> y: array<f32>;
@group(0) @binding(7) var<storage, read_write> y_rows: array<u32>;

const MAX_WORKGROUP = 256u;
var<workgroup> sums: array<f32, MAX_WORKGROUP>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>,
        @builtin(num_workgroups) workgroups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let first = (workgroup.x + workgroup.y * workgroups.x) * (WORKGROUP / LANES);
  if (first >= OUTPUTS || step.rows == 0u) {
    return;
  }
  let lane = local % LANES;
  let output = min(first + local / LANES, OUTPUTS - 1u);
  let group = min(chosen[output / GROUP_ROWS], GROUPS - 1u);
  let row = ordering[group * GROUP_ROWS + output % GROUP_ROWS];
  let is_owned = row >= FIRST_ROW && row - FIRST_ROW < ROWS;

  var sum = vec4<f32>();
  if (is_owned) {
    for (var quad = lane; quad < COLUMNS / 4u; quad += LANES) {
      sum = fma(quad_weights((row - FIRST_ROW) * (COLUMNS / 4u) + quad), x[quad], sum);
    }
  }
  sums[local] = (sum.x + sum.y) + (sum.z + sum.w);
  for (var distance = LANES / 2u; distance > 0u; distance /= 2u) {
    workgroupBarrier();
    if (lane < distance) {
      sums[local] = sums[local] + sums[local + distance];
    }
  }
  if (lane != 0u || first + local / LANES >= OUTPUTS || !is_owned) {
    return;
  }
  var value = sums[local];
  if (SOFTCAP > 0.0) {
    value = SOFTCAP * tanh(clamp(value / SOFTCAP, -15.0, 15.0));
  }
  y[output] = value;
  y_rows[output] = row;
}
