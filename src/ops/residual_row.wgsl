// The residual step of one row by 256 invocations, each of which keeps quads local, local + 256, ...
// of it, for kernels that include this and row_sum.wgsl: they declare
//   override COLUMNS, EPSILON, SCALED and NEXT; scalar: array<f32>; weight and next_weight:
//   array<vec4<f32>>; fn h_quad(at: u32) -> vec4<f32> and fn branch_quad(at: u32) -> vec4<f32>, which read
//   quads of h and of the branch.
// Kernels that yield the same have the same bits: all that a compiler may fuse is fused here.
// Limits: COLUMNS % 4 == 0, COLUMNS <= 8192.

const most_kept = 8u;

override QUADS = COLUMNS / 4u;
override KEPT = (QUADS + invocations - 1u) / invocations;

struct Residual {
  h: array<vec4<f32>, most_kept>,     // zeros beyond the row
  next: array<vec4<f32>, most_kept>,  // h * next_weight
  square: f32,                        // of what the invocation has of h
}

fn add_square(before: f32, v: vec4<f32>) -> f32 {
  return fma(v.w, v.w, fma(v.z, v.z, fma(v.y, v.y, fma(v.x, v.x, before))));
}

fn norm_scale(sum_of_squares: f32) -> f32 {
  return inverseSqrt(fma(sum_of_squares, 1.0 / f32(COLUMNS), EPSILON));
}

// h = (h + b / sqrt(mean(b^2) + EPSILON) * weight) * scalar, b the branch, of the row that begins at quad `base`.
// All is read before the first wait.
fn residual_row(base: u32, local: u32) -> Residual {
  var residual: Residual;
  var branch = array<vec4<f32>, most_kept>();
  var square = 0.0;
  for (var k = 0u; k < KEPT; k++) {
    let quad = k * invocations + local;
    if (quad < QUADS) {
      let value = branch_quad(base + quad);
      square = add_square(square, value);
      branch[k] = value * weight[quad];
      residual.h[k] = h_quad(base + quad);
      if (NEXT) {
        residual.next[k] = next_weight[quad];
      }
    }
  }
  var factor = 1.0;
  if (SCALED) {
    factor = scalar[0];
  }
  let scale = norm_scale(row_sum(square, local));
  for (var k = 0u; k < KEPT; k++) {
    let h = fma(branch[k], vec4<f32>(scale), residual.h[k]) * factor;
    residual.square = add_square(residual.square, h);
    residual.h[k] = h;
    residual.next[k] *= h;
  }
  return residual;
}
