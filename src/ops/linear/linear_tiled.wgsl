// Matrix product for many rows, with its epilogue (linear.h): the route `many`.
//   weights, scales  planes of [ROWS, COLUMNS] (spec/layout.h); f16, f32: scales is not used
//   x [rows][COLUMNS]; times and y [rows][Y_STRIDE], from element Y_OFFSET on
// One workgroup computes a tile of X_TILE rows of x times W_TILE weight rows, walking the columns
// 16 at a time with both tiles in workgroup memory; what it walks next is read ahead. LINES of 16
// invocations each: an invocation sums X_ROWS x W_ROWS products in f32, of x rows i, i + LINES,
// ..., and of neighbouring pairs of weight rows (gelu_pair needs both of a pair). TEAMS of LINES
// share the columns, so that a tile keeps more of a processor busy, and add up their sums at the
// end. Limits: COLUMNS % 4 == 0; gelu_pair: ROWS is even; X_ROWS and W_ROWS 4 or 8, LINES 4, 8 or
// 16, TEAMS 1 or 2, LINES * TEAMS at most 16. 64 TEAMS (X_TILE + W_TILE) bytes of workgroup memory,
// at most 16 KiB.

//#include step.wgsl
//#include gelu.wgsl
//#include epilogue.wgsl
//#include pair_outputs.wgsl
//#include weight_quads.wgsl

override TYPE: u32;
override EPILOGUE: u32;
override ROWS: u32;
override COLUMNS: u32;
override Y_STRIDE: u32;
override Y_OFFSET: u32;
override SOFTCAP: f32;
override X_ROWS: u32;
override W_ROWS: u32;
override LINES: u32;
override TEAMS: u32;

@group(0) @binding(0) var<uniform> step: Step;
@group(0) @binding(1) var<storage, read> weights: array<u32>;
@group(0) @binding(2) var<storage, read> scales: array<u32>;
@group(0) @binding(3) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read> times: array<f32>;
@group(0) @binding(5) var<storage, read_write> y: array<f32>;

const quads = 4u;  // vec4 in a row of a tile
const guards = 4u;
const most_rows = 8u;

override TEAM = 16u * LINES;
override WORKGROUP = TEAM * TEAMS;
override X_TILE = X_ROWS * LINES;
override W_TILE = W_ROWS * 16u;
// Quads that an invocation reads of a tile.
override X_READS = X_TILE * quads / TEAM;
override W_READS = W_TILE * quads / TEAM;
override X_QUADS = X_TILE * quads;
override W_QUADS = W_TILE * quads;

// [team][tile][quads], each at its `place`; at the end the sums of the second team.
var<workgroup> x_tile: array<vec4<f32>, TEAMS * X_QUADS>;
var<workgroup> w_tile: array<vec4<f32>, TEAMS * W_QUADS>;

// Spreads the rows that are read together (every other one) over the memory banks.
fn place(row: u32, quad: u32) -> u32 {
  return (row ^ (row / 8u % 2u)) * quads + (quad ^ (row / 2u % quads));
}

// What is read ahead: of x, and of the weights as they are stored.
struct Ahead {
  x: array<vec4<f32>, 2>,
  w: array<vec4<u32>, most_rows>,
}

// Columns from quad `first_quad` on. Rows beyond the last repeat it; x is zero beyond the columns.
fn read_ahead(first_x: u32, first_w: u32, first_quad: u32, local: u32) -> Ahead {
  var ahead: Ahead;
  let wanted = first_quad + local % quads;
  let quad = min(wanted, COLUMNS / 4u - 1u);
  for (var i = 0u; i < X_READS; i++) {
    let row = min(first_x + local / quads + i * (TEAM / quads), step.rows - 1u);
    ahead.x[i] = x[row * (COLUMNS / 4u) + quad];
    if (COLUMNS % (16u * TEAMS) != 0u && wanted != quad) {
      ahead.x[i] = vec4<f32>();
    }
  }
  for (var i = 0u; i < W_READS; i++) {
    let row = min(first_w + local / quads + i * (TEAM / quads), ROWS - 1u);
    ahead.w[i] = stored_quad(row * (COLUMNS / 4u) + quad);
  }
  return ahead;
}

fn write_tiles(ahead: Ahead, first_w: u32, first_quad: u32, team: u32, local: u32) {
  let quad = min(first_quad + local % quads, COLUMNS / 4u - 1u);
  for (var i = 0u; i < X_READS; i++) {
    let line = local / quads + i * (TEAM / quads);
    x_tile[team * X_QUADS + place(line, local % quads)] = ahead.x[i];
  }
  for (var i = 0u; i < W_READS; i++) {
    let line = local / quads + i * (TEAM / quads);
    let row = min(first_w + line, ROWS - 1u);
    w_tile[team * W_QUADS + place(line, local % quads)] =
        quad_of(ahead.w[i], row * (COLUMNS / 4u) + quad);
  }
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>,
        @builtin(num_workgroups) workgroups: vec3<u32>,
        @builtin(local_invocation_index) invocation: u32) {
  let w_tiles = (ROWS + W_TILE - 1u) / W_TILE;
  let index = workgroup.x + workgroup.y * workgroups.x;
  let first_w = index % w_tiles * W_TILE;
  let first_x = index / w_tiles * X_TILE;
  if (first_x >= step.rows) {
    return;
  }
  let team = invocation / TEAM;
  let local = invocation % TEAM;
  let x_row = local / 16u;
  let w_row = local % 16u * 2u;
  let x_begin = team * X_QUADS;
  let w_begin = team * W_QUADS;
  let live = step.rows - first_x;

  // [row of x][four weight rows]
  var sums = array<vec4<f32>, 2u * most_rows>();
  var ahead = read_ahead(first_x, first_w, team * quads, local);
  for (var turn = 0u; turn < COLUMNS / 4u; turn += TEAMS * quads) {
    let first_quad = turn + team * quads;
    write_tiles(ahead, first_w, first_quad, team, local);
    workgroupBarrier();
    if (turn + TEAMS * quads < COLUMNS / 4u) {
      ahead = read_ahead(first_x, first_w, first_quad + TEAMS * quads, local);
    }
    for (var quad = 0u; quad < quads; quad++) {
      var w = array<mat4x4<f32>, 2>();
      for (var i = 0u; i < W_ROWS / 4u; i++) {
        let row = w_row + 64u * i;
        w[i] = mat4x4<f32>(
            w_tile[w_begin + place(row, quad)], w_tile[w_begin + place(row + 1u, quad)],
            w_tile[w_begin + place(row + 32u, quad)], w_tile[w_begin + place(row + 33u, quad)]);
      }
      // Quarters of the tile without live rows are left out.
      for (var guard = 0u; guard < guards; guard++) {
        if (live > guard * (X_TILE / guards)) {
          for (var k = guard * X_ROWS / guards; k < (guard + 1u) * X_ROWS / guards; k++) {
            let of_x = x_tile[x_begin + place(x_row + k * LINES, quad)];
            for (var i = 0u; i < W_ROWS / 4u; i++) {
              sums[2u * k + i] += of_x * w[i];
            }
          }
        }
      }
    }
    workgroupBarrier();
  }

  if (TEAMS > 1u) {
    // The tiles have room for all sums of a team.
    if (team == 1u) {
      for (var k = 0u; k < X_ROWS; k++) {
        for (var i = 0u; i < W_ROWS / 4u; i++) {
          let slot = (k * (W_ROWS / 4u) + i) * TEAM + local;
          if (slot < 2u * X_QUADS) {
            x_tile[slot] = sums[2u * k + i];
          } else {
            w_tile[slot - 2u * X_QUADS] = sums[2u * k + i];
          }
        }
      }
    }
    workgroupBarrier();
    if (team == 1u) {
      return;
    }
    for (var k = 0u; k < X_ROWS; k++) {
      for (var i = 0u; i < W_ROWS / 4u; i++) {
        let slot = (k * (W_ROWS / 4u) + i) * TEAM + local;
        if (slot < 2u * X_QUADS) {
          sums[2u * k + i] += x_tile[slot];
        } else {
          sums[2u * k + i] += w_tile[slot - 2u * X_QUADS];
        }
      }
    }
  }

  for (var k = 0u; k < X_ROWS; k++) {
    for (var i = 0u; i < W_ROWS / 2u; i++) {
      let four = sums[2u * k + i / 2u];
      write_pair(first_x + x_row + k * LINES, first_w + w_row + i * 32u,
                 select(four.xy, four.zw, i % 2u == 1u));
    }
  }
}
