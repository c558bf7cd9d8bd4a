// The weights of a matrix four at a time, for kernels that include this: they declare
//   override TYPE; weights and scales: array<u32>, the planes of a matrix (spec/layout.h); f16, f32:
//   scales is not used.

// TYPE
const q4_0 = 0u;
const q8_0 = 1u;
const halves = 2u;

const bytes = vec4<u32>(0u, 8u, 16u, 24u);

// Weights 4 * index .. 4 * index + 3, counted row by row, as they are stored: of quantized ones the
// word that has them and the word that has their scale.
fn stored_quad(index: u32) -> vec4<u32> {
  if (TYPE == halves) {
    return vec4<u32>(weights[2u * index], weights[2u * index + 1u], 0u, 0u);
  }
  if (TYPE > q8_0) {
    return vec4<u32>(weights[4u * index], weights[4u * index + 1u], weights[4u * index + 2u],
                     weights[4u * index + 3u]);
  }
  let block = index / 8u;
  let word = select(index, 4u * block + index % 4u, TYPE == q4_0);
  return vec4<u32>(weights[word], scales[block / 2u], 0u, 0u);
}

fn quad_of(stored: vec4<u32>, index: u32) -> vec4<f32> {
  if (TYPE == halves) {
    return vec4<f32>(unpack2x16float(stored.x), unpack2x16float(stored.y));
  }
  if (TYPE > q8_0) {
    return bitcast<vec4<f32>>(stored);
  }
  let scale_pair = unpack2x16float(stored.y);
  let scale = select(scale_pair.x, scale_pair.y, index / 8u % 2u != 0u);
  if (TYPE == q4_0) {
    let nibbles = (vec4<u32>(stored.x >> (index % 8u / 4u * 4u)) >> bytes) & vec4<u32>(15u);
    return scale * (vec4<f32>(nibbles) - vec4<f32>(8.0));
  }
  let word = vec4<u32>(stored.x);
  return scale * vec4<f32>(vec4<i32>(word << (vec4<u32>(24u) - bytes)) >> vec4<u32>(24u));
}

fn quad_weights(index: u32) -> vec4<f32> {
  return quad_of(stored_quad(index), index);
}
