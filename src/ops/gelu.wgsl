// gelu by tanh, for kernels that include this.

// Beyond +-8 gelu(v) is v or 0 in f32. The clamp keeps tanh's argument where no implementation
// overflows.
fn gelu(v: f32) -> f32 {
  let c = clamp(v, -8.0, 8.0);
  return 0.5 * v * (1.0 + tanh(0.7978845608 * (c + 0.044715 * c * c * c)));
}
