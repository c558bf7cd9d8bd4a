// Units of 32 columns as int8 (RowFormat::int8 in op.h), made by the invocations of a workgroup
// together, for kernels that include this: they declare
//   most_units, how many a workgroup makes at the most. 8 bytes of workgroup memory each.
// They clear the units, then note every quad of a unit, then make its words, then read its scale,
// each step after a barrier.

// Magnitudes as bits have the order of their values, with infinity and NaN above all, so that a row
// that is not finite shows in d.
var<workgroup> unit_largest: array<atomic<u32>, most_units>;
var<workgroup> unit_sums: array<atomic<i32>, most_units>;

fn clear_units(units: u32, local: u32, invocations: u32) {
  for (var unit = local; unit < units; unit += invocations) {
    atomicStore(&unit_largest[unit], 0u);
    atomicStore(&unit_sums[unit], 0);
  }
}

fn note_quad(unit: u32, quad: vec4<f32>) {
  let magnitudes = bitcast<vec4<u32>>(quad) & vec4<u32>(0x7fffffffu);
  atomicMax(&unit_largest[unit],
            max(max(magnitudes.x, magnitudes.y), max(magnitudes.z, magnitudes.w)));
}

fn largest_of(unit: u32) -> f32 {
  return bitcast<f32>(atomicLoad(&unit_largest[unit]));
}

// The word of a quad: four q.
fn int8_word(unit: u32, quad: vec4<f32>) -> u32 {
  let q = vec4<i32>(round(quad * (127.0 / max(largest_of(unit), 1e-30))));
  atomicAdd(&unit_sums[unit], (q.x + q.y) + (q.z + q.w));
  let bytes = (vec4<u32>(q) & vec4<u32>(255u)) << vec4<u32>(0u, 8u, 16u, 24u);
  return (bytes.x | bytes.y) | (bytes.z | bytes.w);
}

// d and the sum of q, of units that are to be `factor` times as large as what was noted.
fn int8_scale(unit: u32, factor: f32) -> vec2<u32> {
  return vec2<u32>(bitcast<u32>(largest_of(unit) * (1.0 / 127.0) * factor),
                   bitcast<u32>(atomicLoad(&unit_sums[unit])));
}
