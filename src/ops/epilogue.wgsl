// What a product ends with (linear.h), for kernels that include this and gelu.wgsl: they declare
//   override EPILOGUE and SOFTCAP; times: array<f32>.

// EPILOGUE
const gelu_pair = 1u;
const gelu_times = 2u;
const softcap = 3u;

// What is not finite stays so, for the host to notice: a clamp would hide it.
fn capped(v: f32) -> f32 {
  if ((bitcast<u32>(v) & 0x7f800000u) == 0x7f800000u) {
    return v;
  }
  return SOFTCAP * tanh(clamp(v / SOFTCAP, -15.0, 15.0));
}

// Of all epilogues but gelu_pair: the output at `to` from the product v.
fn finish(v: f32, to: u32) -> f32 {
  if (EPILOGUE == gelu_times) {
    return gelu(v) * times[to];
  }
  if (EPILOGUE == softcap) {
    return capped(v);
  }
  return v;
}
