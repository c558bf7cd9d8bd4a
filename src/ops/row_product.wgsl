// The product of one row of x with a few weight rows by one workgroup, for kernels that include this
// and weight_units.wgsl: they declare
//   override COLUMNS and LANES; x: array<vec4<f32>> of rows of COLUMNS.
// The LANES invocations of four weight rows take their units of 32 columns in turn, each summing in
// f32; a tree in workgroup memory adds the lanes up. x goes through workgroup memory in tiles of 2048
// columns. Nothing of this order depends on the rows beside. 16 KiB of workgroup memory.
// Limits: LANES a power of two up to 256; up to 1024 weight rows, a multiple of 4; COLUMNS % 32 == 0.

const invocations = 256u;
const tile_units = 64u;

// [quad of a unit][unit], so that neighbouring lanes read neighbouring elements.
var<workgroup> x_tile: array<vec4<f32>, 512>;
var<workgroup> sums: array<vec4<f32>, invocations>;
// Four weight rows an element; zeros beyond the last.
var<workgroup> product: array<vec4<f32>, invocations>;

// The product with a unit of the tile. Written out, since an array that is indexed by a variable
// may not stay in registers.
fn unit_product(w: Unit, unit: u32) -> vec4<f32> {
  var sum = w[0] * x_tile[unit];
  sum = fma(w[1], x_tile[unit + tile_units], sum);
  sum = fma(w[2], x_tile[unit + 2u * tile_units], sum);
  sum = fma(w[3], x_tile[unit + 3u * tile_units], sum);
  sum = fma(w[4], x_tile[unit + 4u * tile_units], sum);
  sum = fma(w[5], x_tile[unit + 5u * tile_units], sum);
  sum = fma(w[6], x_tile[unit + 6u * tile_units], sum);
  return fma(w[7], x_tile[unit + 7u * tile_units], sum);
}

// What a lane has of the products of four weight rows with the tile, whose units are
// first_unit .. first_unit + units - 1 of the row.
fn lane_products(row: u32, first_unit: u32, units: u32, lane: u32) -> vec4<f32> {
  var sum0 = vec4<f32>();
  var sum1 = vec4<f32>();
  var sum2 = vec4<f32>();
  var sum3 = vec4<f32>();
  for (var i = lane; i < units; i += LANES) {
    let unit = first_unit + i;
    sum0 = fma(unit_scale(row, unit), unit_product(unit_weights(row, unit), i), sum0);
    sum1 = fma(unit_scale(row + 1u, unit), unit_product(unit_weights(row + 1u, unit), i), sum1);
    sum2 = fma(unit_scale(row + 2u, unit), unit_product(unit_weights(row + 2u, unit), i), sum2);
    sum3 = fma(unit_scale(row + 3u, unit), unit_product(unit_weights(row + 3u, unit), i), sum3);
  }
  let parts = transpose(mat4x4<f32>(sum0, sum1, sum2, sum3));
  return (parts[0] + parts[1]) + (parts[2] + parts[3]);
}

// Leaves the products of row x_row of x with weight rows first_row .. first_row + rows - 1 in
// `product`.
fn multiply(x_row: u32, first_row: u32, rows: u32, local: u32) {
  let lane = local % LANES;
  let row_units = COLUMNS / 32u;
  product[local] = vec4<f32>();
  for (var first_unit = 0u; first_unit < row_units; first_unit += tile_units) {
    let units = min(tile_units, row_units - first_unit);
    for (var i = local; i < 8u * units; i += invocations) {
      x_tile[i % 8u * tile_units + i / 8u] = x[8u * (x_row * row_units + first_unit) + i];
    }
    workgroupBarrier();
    for (var first_quad = 0u; first_quad < rows / 4u; first_quad += invocations / LANES) {
      let quad = first_quad + local / LANES;
      let is_live = quad < rows / 4u;
      if (is_live) {
        sums[local] = lane_products(first_row + 4u * quad, first_unit, units, lane);
      }
      workgroupBarrier();
      for (var distance = LANES / 2u; distance > 0u; distance /= 2u) {
        if (lane < distance) {
          sums[local] += sums[local + distance];
        }
        workgroupBarrier();
      }
      if (is_live && lane == 0u) {
        product[quad] += sums[local];
      }
    }
  }
  workgroupBarrier();
}
