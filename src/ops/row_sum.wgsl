// The sums over a row of what 256 invocations have of it, in two steps of 16, for kernels that include
// this. In f32, in an order of its own alone. 2 KiB of workgroup memory.

const invocations = 256u;

var<workgroup> sums: array<vec2<f32>, invocations>;
var<workgroup> sums_of_16: array<vec2<f32>, 16>;

// Called by all invocations together, any number of times.
fn row_sums(values: vec2<f32>, local: u32) -> vec2<f32> {
  sums[local] = values;
  workgroupBarrier();
  if (local < 16u) {
    var sum = sums[local];
    for (var i = 1u; i < 16u; i++) {
      sum += sums[16u * i + local];
    }
    sums_of_16[local] = sum;
  }
  workgroupBarrier();
  var sum = sums_of_16[0];
  for (var i = 1u; i < 16u; i++) {
    sum += sums_of_16[i];
  }
  return sum;
}

fn row_sum(value: f32, local: u32) -> f32 {
  return row_sums(vec2<f32>(value, 0.0), local).x;
}
