// The weights of a matrix in units of 32 columns, for kernels that include this: they declare
//   override TYPE and COLUMNS; weights: array<vec4<u32>> and scales: array<u32>, the planes of a
//   matrix of rows of COLUMNS (spec/layout.h); f16, f32: scales is not used.

// TYPE
const q4_0 = 0u;
const q8_0 = 1u;
const halves = 2u;

alias Unit = array<vec4<f32>, 8>;  // 32 weights

const bytes = vec4<u32>(0u, 8u, 16u, 24u);

fn low_nibbles(word: u32) -> vec4<f32> {
  return vec4<f32>((vec4<u32>(word) >> bytes) & vec4<u32>(15u)) - vec4<f32>(8.0);
}

fn signed_bytes(word: u32) -> vec4<f32> {
  return vec4<f32>(vec4<i32>(vec4<u32>(word) << (vec4<u32>(24u) - bytes)) >> vec4<u32>(24u));
}

fn two_halves(words: vec2<u32>) -> vec4<f32> {
  return vec4<f32>(unpack2x16float(words.x), unpack2x16float(words.y));
}

// Four float weights from element `index` of the plane, a multiple of 4.
fn floats(index: u32) -> vec4<f32> {
  let words = weights[select(index / 4u, index / 8u, TYPE == halves)];
  if (TYPE == halves) {
    return two_halves(select(words.xy, words.zw, (index & 4u) != 0u));
  }
  return bitcast<vec4<f32>>(words);
}

// The weights of a whole unit, without their scale.
fn unit_weights(row: u32, unit: u32) -> Unit {
  if (TYPE > q8_0) {
    let i = row * COLUMNS + 32u * unit;
    return Unit(floats(i), floats(i + 4u), floats(i + 8u), floats(i + 12u), floats(i + 16u),
                floats(i + 20u), floats(i + 24u), floats(i + 28u));
  }
  let block = row * (COLUMNS / 32u) + unit;
  if (TYPE == q4_0) {
    let low = weights[block];
    let high = low >> vec4<u32>(4u);
    return Unit(low_nibbles(low.x), low_nibbles(low.y), low_nibbles(low.z), low_nibbles(low.w),
                low_nibbles(high.x), low_nibbles(high.y), low_nibbles(high.z),
                low_nibbles(high.w));
  }
  let low = weights[2u * block];
  let high = weights[2u * block + 1u];
  return Unit(signed_bytes(low.x), signed_bytes(low.y), signed_bytes(low.z), signed_bytes(low.w),
              signed_bytes(high.x), signed_bytes(high.y), signed_bytes(high.z),
              signed_bytes(high.w));
}

fn unit_scale(row: u32, unit: u32) -> vec4<f32> {
  if (TYPE > q8_0) {
    return vec4<f32>(1.0);
  }
  let block = row * (COLUMNS / 32u) + unit;
  let pair = unpack2x16float(scales[block / 2u]);
  return vec4<f32>(select(pair.x, pair.y, (block & 1u) != 0u));
}
