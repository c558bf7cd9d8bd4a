// Rows of f32 to int8 where they lie (quantize.h).
// Shapes: x [rows][COLUMNS] words, as f32 and then as RowFormat::int8 (op.h). One workgroup does a
// row, which its invocations keep before the first word is written.
// Limits: COLUMNS % 32 == 0, at most 16384; 4 KiB of workgroup memory.

//#include step.wgsl
//#include int8_units.wgsl
//#include int8_place.wgsl

override COLUMNS: u32;

const invocations = 256u;
const most_units = 512u;
const most_kept = 16u;

override QUADS = COLUMNS / 4u;
override KEPT = (QUADS + invocations - 1u) / invocations;

@group(0) @binding(0) var<uniform> step: Step;
@group(0) @binding(1) var<storage, read_write> x: array<u32>;

@compute @workgroup_size(invocations)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let row = group.x + group.y * groups.x;
  if (row >= step.rows) {
    return;
  }
  let base = row * COLUMNS;
  clear_units(COLUMNS / 32u, local, invocations);
  workgroupBarrier();
  var kept = array<vec4<f32>, most_kept>();
  for (var k = 0u; k < KEPT; k++) {
    let quad = k * invocations + local;
    if (quad < QUADS) {
      let at = base + 4u * quad;
      kept[k] = bitcast<vec4<f32>>(vec4<u32>(x[at], x[at + 1u], x[at + 2u], x[at + 3u]));
      note_quad(quad / 8u, kept[k]);
    }
  }
  // All is read and noted before anything is written over it.
  storageBarrier();
  workgroupBarrier();
  for (var k = 0u; k < KEPT; k++) {
    let quad = k * invocations + local;
    if (quad < QUADS) {
      x[base + int8_place(quad, COLUMNS)] = int8_word(quad / 8u, kept[k]);
    }
  }
  workgroupBarrier();
  for (var unit = local; unit < COLUMNS / 32u; unit += invocations) {
    let scale = int8_scale(unit, 1.0);
    let to = base + int8_scale_place(unit, COLUMNS);
    x[to] = scale.x;
    x[to + 1u] = scale.y;
  }
}
