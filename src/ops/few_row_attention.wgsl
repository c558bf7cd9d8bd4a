// What the kernels of attention for few rows share: the query of a head, turned or not, and keys
// and values in units of eight elements, for kernels that include this and row_sum.wgsl: they declare
//   override HEAD_DIM, KV_F16, ROPE, ROTATED and EPSILON; q: array<vec4<f32>>, keys and values:
//   array<vec4<u32>>, q_norm: array<vec4<f32>>, angles: array<vec2<f32>>.

override QUADS = HEAD_DIM / 4u;
// Of eight elements: what an invocation reads of a key or value at once.
override UNITS = HEAD_DIM / 8u;

// Four lanes share the product of the query and a key, and read it side by side.
const lanes = 4u;
const lowest = -3.0e38;

var<workgroup> query: array<vec4<f32>, QUADS>;

struct Eight {
  low: vec4<f32>,
  high: vec4<f32>,
}

fn halves(words: vec4<u32>) -> Eight {
  return Eight(vec4<f32>(unpack2x16float(words.x), unpack2x16float(words.y)),
               vec4<f32>(unpack2x16float(words.z), unpack2x16float(words.w)));
}

// Elements 8 * unit .. 8 * unit + 7 of a slot's head.
fn key_unit(cached: u32, unit: u32) -> Eight {
  if (KV_F16) {
    return halves(keys[cached * UNITS + unit]);
  }
  let at = cached * QUADS + 2u * unit;
  return Eight(bitcast<vec4<f32>>(keys[at]), bitcast<vec4<f32>>(keys[at + 1u]));
}
fn value_unit(cached: u32, unit: u32) -> Eight {
  if (KV_F16) {
    return halves(values[cached * UNITS + unit]);
  }
  let at = cached * QUADS + 2u * unit;
  return Eight(bitcast<vec4<f32>>(values[at]), bitcast<vec4<f32>>(values[at + 1u]));
}

// exp for differences from a maximum: what is below -80 adds nothing to a sum in f32.
fn weight(difference: f32) -> f32 {
  return exp(clamp(difference, -80.0, 0.0));
}

// What a lane has of the product of the query and a key.
fn key_product(cached: u32, lane: u32) -> f32 {
  var sum = vec4<f32>();
  for (var first = 0u; first < UNITS; first += lanes) {
    let unit = first + lane;
    if (UNITS % lanes == 0u || unit < UNITS) {
      let k = key_unit(cached, unit);
      sum = fma(query[2u * unit], k.low, sum);
      sum = fma(query[2u * unit + 1u], k.high, sum);
    }
  }
  return (sum.x + sum.y) + (sum.z + sum.w);
}

fn angle(position: u32, pair: u32) -> vec2<f32> {
  if (pair >= ROTATED) {
    return vec2<f32>(1.0, 0.0);
  }
  let row = min(position, arrayLength(&angles) / ROTATED - 1u);
  return angles[row * ROTATED + pair];
}

// Leaves the head's query from quad `first_quad` of q on in `query`.
fn read_query(first_quad: u32, position: u32, local: u32) {
  var value = vec4<f32>();
  if (local < QUADS) {
    value = q[first_quad + local];
  }
  if (ROPE) {
    let squares = value * value;
    let sum = row_sum((squares.x + squares.y) + (squares.z + squares.w), local);
    value *= inverseSqrt(sum / f32(HEAD_DIM) + EPSILON);
    if (local < QUADS) {
      query[local] = value * q_norm[local];
    }
    workgroupBarrier();
    // Each has the quad of its number and the quad that it is turned with.
    let first = local % (QUADS / 2u);
    let low = query[first];
    let high = query[first + QUADS / 2u];
    let turns = transpose(mat4x2<f32>(angle(position, 4u * first), angle(position, 4u * first + 1u),
                                      angle(position, 4u * first + 2u),
                                      angle(position, 4u * first + 3u)));
    value = select(high * turns[0] + low * turns[1], low * turns[0] - high * turns[1],
                   local < QUADS / 2u);
    workgroupBarrier();
  }
  if (local < QUADS) {
    query[local] = value;
  }
  workgroupBarrier();
}
