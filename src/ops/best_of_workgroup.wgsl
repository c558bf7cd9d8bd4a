// The best of what a workgroup's invocations have found, for kernels that include this: the largest
// value and, of equals, the lowest token. All comparisons are of integers, so the result does not
// depend on their order.

struct Best {
  value: u32,
  token: u32,
}

var<workgroup> best_value: atomic<u32>;
var<workgroup> best_inverse: atomic<u32>;  // ~token: the largest is the lowest token

// Called by all invocations together. One that does not propose knows of another with as large a
// value, or has found nothing.
fn best_of_workgroup(own: Best, proposes: bool, invocation: u32) -> Best {
  if (invocation == 0u) {
    atomicStore(&best_value, 0u);
    atomicStore(&best_inverse, 0u);
  }
  workgroupBarrier();
  if (proposes) {
    atomicMax(&best_value, own.value);
  }
  workgroupBarrier();
  let value = atomicLoad(&best_value);
  if (own.value == value) {
    atomicMax(&best_inverse, ~own.token);
  }
  workgroupBarrier();
  return Best(value, ~atomicLoad(&best_inverse));
}
