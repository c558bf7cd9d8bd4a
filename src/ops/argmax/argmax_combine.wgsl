// Second stage of the argmax: the best of a row's tiles.
// Shapes: partials [rows][TILES] of (ordered value, index) as argmax.wgsl writes them, index
// [rows]. One workgroup computes one row. Limits: any number of TILES.

//#include step.wgsl
//#include best_of_workgroup.wgsl

//#if subgroups
enable subgroups;
//#end

override TILES: u32;

const INVOCATIONS = 128u;

@group(0) @binding(0) var<uniform> step: Step;
@group(0) @binding(1) var<storage, read> partials: array<vec2<u32>>;
@group(0) @binding(2) var<storage, read_write> index: array<u32>;

@compute @workgroup_size(INVOCATIONS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) invocation: u32) {
  let row = group.x + group.y * groups.x;
  if (row >= step.rows) {
    return;
  }

  var value = 0u;
  var token = 0u;
  for (var tile = invocation; tile < TILES; tile += INVOCATIONS) {
    let partial = partials[row * TILES + tile];
    if (partial.x > value || (partial.x == value && partial.y < token)) {
      value = partial.x;
      token = partial.y;
    }
  }

  var proposes = true;
//#if subgroups
  proposes = value == subgroupMax(value);
//#end
  let best = best_of_workgroup(Best(value, token), proposes, invocation);
  if (invocation == 0u) {
    index[row] = best.token;
  }
}
