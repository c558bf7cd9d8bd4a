// The sum over a row of what 256 invocations have of it, in two steps of 16, for kernels that include
// this. In f32, in an order of its own alone. 1 KiB of workgroup memory.

const invocations = 256u;

var<workgroup> parts: array<f32, invocations>;
var<workgroup> sums_of_16: array<f32, 16>;

fn four_parts(i: u32) -> vec4<f32> {
  return vec4<f32>(parts[i], parts[i + 16u], parts[i + 32u], parts[i + 48u]);
}

fn four_sums_of_16(i: u32) -> vec4<f32> {
  return vec4<f32>(sums_of_16[i], sums_of_16[i + 1u], sums_of_16[i + 2u], sums_of_16[i + 3u]);
}

// The first step. Called by all invocations together, and sum_of_parts after it.
fn note_part(value: f32, local: u32) {
  parts[local] = value;
  workgroupBarrier();
  if (local < 16u) {
    var sum = four_parts(local);
    for (var i = 1u; i < 4u; i++) {
      sum += four_parts(64u * i + local);
    }
    sums_of_16[local] = (sum.x + sum.y) + (sum.z + sum.w);
  }
}

// The second.
fn sum_of_parts() -> f32 {
  workgroupBarrier();
  var sum = four_sums_of_16(0u);
  for (var i = 1u; i < 4u; i++) {
    sum += four_sums_of_16(4u * i);
  }
  return (sum.x + sum.y) + (sum.z + sum.w);
}

// Both, any number of times.
fn row_sum(value: f32, local: u32) -> f32 {
  note_part(value, local);
  return sum_of_parts();
}
