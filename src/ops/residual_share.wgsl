// The residual step before the product of one row, done by each of the product's workgroups, for
// kernels that include this, row_sum.wgsl and residual_row.wgsl: they declare
//   override ROWS, COLUMNS, LANES and BRANCH; stream: array<vec4<f32>>, h and from element BRANCH on
//   the branch; next_h: array<vec4<f32>>, which each workgroup writes a share of.
// Limits: BRANCH % 4 == 0.

const M = 1u;
const WORKGROUP = invocations;
const NEXT = true;

override ROWS_PER_GROUP = 4u * WORKGROUP / LANES;
override GROUPS = (ROWS + ROWS_PER_GROUP - 1u) / ROWS_PER_GROUP;
override SHARE = (QUADS + GROUPS - 1u) / GROUPS;  // of h', a workgroup's

// The workgroup's number. Set before lane_products, which asks for x in the middle.
var<private> group: u32;

fn h_quad(at: u32) -> vec4<f32> {
  return stream[at];
}
fn branch_quad(at: u32) -> vec4<f32> {
  return stream[BRANCH / 4u + at];
}

fn own_residual(local: u32) -> Residual {
  let residual = residual_row(0u, local);
  for (var k = 0u; k < KEPT; k++) {
    let quad = k * WORKGROUP + local;
    if (quad < QUADS && quad / SHARE == group) {
      next_h[quad] = residual.h[k];
    }
  }
  return residual;
}
