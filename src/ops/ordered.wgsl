// Floats as integers, whose comparisons are exact, for kernels that include this.

// Maps floats to integers above 0 of the same order; -0.0 and 0.0 are equal.
fn ordered(value: f32) -> u32 {
  let bits = bitcast<u32>(value);
  if (bits > 0x80000000u) {
    return ~bits;
  }
  return (bits & 0x7fffffffu) | 0x80000000u;
}
