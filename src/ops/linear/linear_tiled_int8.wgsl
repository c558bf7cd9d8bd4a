// Matrix product for many rows of int8, with its epilogue (linear.h): the route `many` where x is
// int8. As linear_tiled.wgsl, but the columns are walked two units of 32 at a time, and what a unit
// adds is (sum of weight q, an integer) * its scale * d.
//   weights, scales  planes of [ROWS, COLUMNS] (spec/layout.h), TYPE q4_0 or q8_0
//   x [rows][COLUMNS] words, RowFormat::int8 (op.h); times and y [rows][Y_STRIDE], from element
//   Y_OFFSET on
// An invocation sums 8 rows of x times 4 weight rows, so that a team has two invocations for each
// row of x in its tile, which read a unit each. Limits: COLUMNS % 32 == 0; gelu_pair: ROWS is even;
// LINES 4 or 8, TEAMS 1 or 2, LINES * TEAMS at most 8. At most 14 KiB of workgroup memory.

//#include step.wgsl
//#include dot_of_bytes.wgsl
//#include gelu.wgsl
//#include epilogue.wgsl
//#include pair_outputs.wgsl

override TYPE: u32;
override EPILOGUE: u32;
override ROWS: u32;
override COLUMNS: u32;
override Y_STRIDE: u32;
override Y_OFFSET: u32;
override SOFTCAP: f32;
override LINES: u32;
override TEAMS: u32;

@group(0) @binding(0) var<uniform> step: Step;
@group(0) @binding(1) var<storage, read> weights: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> scales: array<u32>;
@group(0) @binding(3) var<storage, read> x: array<vec4<u32>>;
@group(0) @binding(4) var<storage, read> times: array<f32>;
@group(0) @binding(5) var<storage, read_write> y: array<f32>;

// TYPE
const q4_0 = 0u;

const guards = 4u;
const x_rows = 8u;   // of an invocation
const w_tile = 64u;  // weight rows, four of each of 16 invocations
const turn_units = 2u;

override UNITS = COLUMNS / 32u;
override TEAM = 16u * LINES;
override WORKGROUP = TEAM * TEAMS;
override X_TILE = x_rows * LINES;
override W_READS = w_tile / X_TILE;  // weight rows of which an invocation reads a unit
override W_QUADS = select(2u, 1u, TYPE == q4_0);  // of a unit of them as it is stored
override TILE = 2u * X_TILE + W_QUADS * w_tile;
override TILES = turn_units * TEAMS * TILE;
override SUMS = (TEAMS - 1u) * x_rows * TEAM;

// Of each unit of a turn and team: the first 16 columns of the rows of x, the other 16, and the
// quads of the weight rows; at the end the sums of the second team.
var<workgroup> tiles: array<vec4<u32>, max(TILES, SUMS)>;
// d, and what a sum of products begins with.
var<workgroup> x_scales: array<vec2<u32>, turn_units * TEAMS * X_TILE>;
var<workgroup> w_scales: array<f32, turn_units * TEAMS * w_tile>;

//#if dp4a
fn dot4(a: u32, b: u32) -> i32 {
  return dot4I8Packed(a, b);
}
//#else
fn dot4(a: u32, b: u32) -> i32 {
  return dot_of_bytes(a, b);
}
//#end

// Of 16 columns.
fn dot16(a: vec4<u32>, b: vec4<u32>, before: i32) -> i32 {
  return dot4(a.w, b.w) + (dot4(a.z, b.z) + (dot4(a.y, b.y) + (dot4(a.x, b.x) + before)));
}

// Which weight row of the tile is where: neighbouring invocations read side by side.
fn tile_row(slot: u32) -> u32 {
  return slot / 32u * 32u + slot % 16u * 2u + slot / 16u % 2u;
}

// What is read ahead: a unit of x, and of the weights as they are stored, of q4_0 in `w_low` alone.
struct Ahead {
  x_low: vec4<u32>,
  x_high: vec4<u32>,
  x_scale: vec2<u32>,
  w_low: array<vec4<u32>, 2>,
  w_high: array<vec4<u32>, 2>,
  w_scale: array<f32, 2>,
}

// The units of a turn from `first_unit` on. Rows beyond the last repeat it; d is zero beyond the
// units.
fn read_ahead(first_x: u32, first_w: u32, first_unit: u32, local: u32) -> Ahead {
  let wanted = first_unit + local % turn_units;
  let unit = min(wanted, UNITS - 1u);
  let line = local / turn_units;
  let x_row = min(first_x + line, step.rows - 1u) * (COLUMNS / 4u);
  let scales_of_two = x[x_row + 2u * UNITS + unit / 2u];
  var ahead: Ahead;
  ahead.x_low = x[x_row + unit];
  ahead.x_high = x[x_row + UNITS + unit];
  ahead.x_scale = select(scales_of_two.xy, scales_of_two.zw, unit % 2u == 1u);
  if (UNITS % (turn_units * TEAMS) != 0u && wanted != unit) {
    ahead.x_scale.x = 0u;
  }
  for (var i = 0u; i < W_READS; i++) {
    let row = min(first_w + tile_row(line + i * X_TILE), ROWS - 1u);
    let block = row * UNITS + unit;
    ahead.w_low[i] = weights[W_QUADS * block];
    if (TYPE != q4_0) {
      ahead.w_high[i] = weights[W_QUADS * block + 1u];
    }
    let scale_pair = unpack2x16float(scales[block / 2u]);
    ahead.w_scale[i] = select(scale_pair.x, scale_pair.y, block % 2u == 1u);
  }
  return ahead;
}

fn write_tiles(ahead: Ahead, team: u32, local: u32) {
  let unit = turn_units * team + local % turn_units;
  let line = local / turn_units;
  let x_begin = unit * TILE;
  let w_begin = x_begin + 2u * X_TILE;
  // Nibbles are the weights plus 8.
  let before = select(0, -8 * bitcast<i32>(ahead.x_scale.y), TYPE == q4_0);
  tiles[x_begin + line] = ahead.x_low;
  tiles[x_begin + X_TILE + line] = ahead.x_high;
  x_scales[unit * X_TILE + line] = vec2<u32>(ahead.x_scale.x, bitcast<u32>(before));
  for (var i = 0u; i < W_READS; i++) {
    let slot = line + i * X_TILE;
    tiles[w_begin + slot] = ahead.w_low[i];
    if (TYPE != q4_0) {
      tiles[w_begin + w_tile + slot] = ahead.w_high[i];
    }
    w_scales[unit * w_tile + slot] = ahead.w_scale[i];
  }
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>,
        @builtin(num_workgroups) workgroups: vec3<u32>,
        @builtin(local_invocation_index) invocation: u32) {
  let w_tiles = (ROWS + w_tile - 1u) / w_tile;
  let index = workgroup.x + workgroup.y * workgroups.x;
  let first_w = index % w_tiles * w_tile;
  let first_x = index / w_tiles * X_TILE;
  if (first_x >= step.rows) {
    return;
  }
  let team = invocation / TEAM;
  let local = invocation % TEAM;
  let x_row = local / 16u;
  let lane = local % 16u;
  let live = step.rows - first_x;

  // [row of x], each of four weight rows
  var sums = array<vec4<f32>, x_rows>();
  var ahead = read_ahead(first_x, first_w, turn_units * team, local);
  for (var turn = 0u; turn < UNITS; turn += turn_units * TEAMS) {
    write_tiles(ahead, team, local);
    workgroupBarrier();
    if (turn + turn_units * TEAMS < UNITS) {
      ahead = read_ahead(first_x, first_w, turn + turn_units * (TEAMS + team), local);
    }
    for (var unit = turn_units * team; unit < turn_units * (team + 1u); unit++) {
      let x_begin = unit * TILE + x_row;
      let w_begin = unit * TILE + 2u * X_TILE + lane;
      var low = array<vec4<u32>, 4>();
      var high = array<vec4<u32>, 4>();
      for (var i = 0u; i < 4u; i++) {
        low[i] = tiles[w_begin + 16u * i];
        if (TYPE == q4_0) {
          high[i] = (low[i] >> vec4<u32>(4u)) & vec4<u32>(0x0f0f0f0fu);
          low[i] &= vec4<u32>(0x0f0f0f0fu);
        } else {
          high[i] = tiles[w_begin + w_tile + 16u * i];
        }
      }
      let at = unit * w_tile + lane;
      let scale =
          vec4<f32>(w_scales[at], w_scales[at + 16u], w_scales[at + 32u], w_scales[at + 48u]);
      // Quarters of the tile without live rows are left out.
      for (var guard = 0u; guard < guards; guard++) {
        if (live > guard * (X_TILE / guards)) {
          for (var k = guard * x_rows / guards; k < (guard + 1u) * x_rows / guards; k++) {
            let a = tiles[x_begin + k * LINES];
            let b = tiles[x_begin + X_TILE + k * LINES];
            let of_x = x_scales[unit * X_TILE + x_row + k * LINES];
            let before = bitcast<i32>(of_x.y);
            let q = vec4<i32>(dot16(high[0], b, dot16(low[0], a, before)),
                              dot16(high[1], b, dot16(low[1], a, before)),
                              dot16(high[2], b, dot16(low[2], a, before)),
                              dot16(high[3], b, dot16(low[3], a, before)));
            sums[k] = fma(scale, vec4<f32>(q) * bitcast<f32>(of_x.x), sums[k]);
          }
        }
      }
    }
    workgroupBarrier();
  }

  if (TEAMS > 1u) {
    if (team == 1u) {
      for (var k = 0u; k < x_rows; k++) {
        tiles[k * TEAM + local] = bitcast<vec4<u32>>(sums[k]);
      }
    }
    workgroupBarrier();
    if (team == 1u) {
      return;
    }
    for (var k = 0u; k < x_rows; k++) {
      sums[k] += bitcast<vec4<f32>>(tiles[k * TEAM + local]);
    }
  }

  for (var k = 0u; k < x_rows; k++) {
    let row = first_x + x_row + k * LINES;
    write_pair(row, first_w + 2u * lane, sums[k].xy);
    write_pair(row, first_w + 2u * lane + 32u, sums[k].zw);
  }
}
