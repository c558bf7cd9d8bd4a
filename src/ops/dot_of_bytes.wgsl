// What dot4I8Packed computes, for adapters without it: kernels that include this call it there.

fn signed_bytes(word: u32) -> vec4<i32> {
  return vec4<i32>(vec4<u32>(word) << vec4<u32>(24u, 16u, 8u, 0u)) >> vec4<u32>(24u);
}

// The product of four signed bytes with four.
fn dot_of_bytes(a: u32, b: u32) -> i32 {
  let products = signed_bytes(a) * signed_bytes(b);
  return (products.x + products.y) + (products.z + products.w);
}
