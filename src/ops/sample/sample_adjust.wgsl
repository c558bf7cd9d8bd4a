// First pass of sampling (sample.h): penalty, bias and temperature. Writes the adjusted logits as
// integers of the same order, and zeros for the passes that follow.
// Shapes: logits [rows][COLUMNS], timeline [CONTEXT], biases [MAX_BIASES] of (token, f32), keys
// [rows][TILES * TILE] (0 beyond COLUMNS), state [rows][STATE_WORDS]. One workgroup adjusts a tile
// of TILE columns of a row. Limits: biases are of distinct tokens; tokens that are no columns are
// ignored.

//#include step.wgsl
//#include ordered.wgsl

struct Settings {
  greedy: u32,
  scale: f32,
  top_k: u32,
  top_p: u32,
  min_p: f32,
  penalty: f32,
  inverse_penalty: f32,
  penalty_window: u32,
  seed: vec2<u32>,
  bias_count: u32,
  reserved: u32,
}

struct Bias {
  token: u32,
  bias: f32,
}

override COLUMNS: u32;
override CONTEXT: u32;
override MAX_BIASES: u32;
override STATE_WORDS: u32;
override INVOCATIONS: u32;

const RUN = 8u;  // columns of an invocation
const LARGEST = 1e20;  // no operation below overflows

override TILE = RUN * INVOCATIONS;
override MARK_WORDS = TILE / 32u;
// Two make a tile of the passes that follow.
override TILES = (COLUMNS + 2u * TILE - 1u) / (2u * TILE) * 2u;

@group(0) @binding(0) var<uniform> step: Step;
@group(0) @binding(1) var<uniform> settings: Settings;
@group(0) @binding(2) var<storage, read> logits: array<f32>;
@group(0) @binding(3) var<storage, read> timeline: array<u32>;
@group(0) @binding(4) var<storage, read> biases: array<Bias>;
@group(0) @binding(5) var<storage, read_write> keys: array<u32>;
@group(0) @binding(6) var<storage, read_write> state: array<u32>;

var<workgroup> values: array<f32, TILE>;
var<workgroup> marks: array<atomic<u32>, MARK_WORDS>;  // a bit for each column that is penalized

@compute @workgroup_size(INVOCATIONS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) invocation: u32) {
  let index = group.x + group.y * groups.x;
  let row = index / TILES;
  let tile = index % TILES;
  if (row >= step.rows) {
    return;
  }
  let first = tile * TILE;
  let count = min(TILE, COLUMNS - min(first, COLUMNS));

  for (var i = tile * INVOCATIONS + invocation; i < STATE_WORDS; i += TILES * INVOCATIONS) {
    state[row * STATE_WORDS + i] = 0u;
  }
  for (var i = invocation; i < MARK_WORDS; i += INVOCATIONS) {
    atomicStore(&marks[i], 0u);
  }
  for (var i = invocation; i < count; i += INVOCATIONS) {
    values[i] = clamp(logits[row * COLUMNS + first + i], -LARGEST, LARGEST);
  }
  workgroupBarrier();

  if (settings.penalty != 1.0) {
    let end = min(step.position + row + 1u, CONTEXT);
    let begin = end - min(end, settings.penalty_window);
    for (var position = begin + invocation; position < end; position += INVOCATIONS) {
      let column = timeline[position] - first;  // wraps around for tokens of the tiles before
      if (column < count) {
        atomicOr(&marks[column / 32u], 1u << (column % 32u));
      }
    }
    workgroupBarrier();
    for (var i = invocation; i < count; i += INVOCATIONS) {
      if (((atomicLoad(&marks[i / 32u]) >> (i % 32u)) & 1u) != 0u) {
        let negative = values[i] < 0.0;
        values[i] *= select(settings.inverse_penalty, settings.penalty, negative);
      }
    }
    workgroupBarrier();
  }

  for (var i = invocation; i < min(settings.bias_count, MAX_BIASES); i += INVOCATIONS) {
    let column = biases[i].token - first;
    if (column < count) {
      values[column] += biases[i].bias;
    }
  }
  workgroupBarrier();

  for (var i = invocation; i < TILE; i += INVOCATIONS) {
    var key = 0u;
    if (i < count) {
      key = ordered(values[i] * settings.scale);
    }
    keys[index * TILE + i] = key;
  }
}
