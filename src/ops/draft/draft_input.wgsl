// What the next round's drafts begin with (draft.h): the steps of the drafts, and in y the newest token's
// embedding, beside the hidden state before it.
//   weights, scales  planes of the part of the table that begins at row FIRST_ROW and has ROWS rows
//                    of COLUMNS (spec/layout.h); f16, f32: scales is not used
//   timeline [CONTEXT + 1]; x [MAX_ROWS][COLUMNS], in X_FORMAT (RowFormat in op.h); y [2][COLUMNS];
//   draft_steps [DRAFTS]
// One workgroup does it all. A part writes the embedding if it owns the token, the first part also the
// rest. Limits: COLUMNS % 4 == 0; quantized, and x but for column by column: % 32; DRAFTS <= 256.

//#include step.wgsl
//#include weight_quads.wgsl
//#include lane_order.wgsl
//#include int8_place.wgsl
//#include row_quads.wgsl

struct SpacedStep {
  @size(256) step: Step,
}

override TYPE: u32;
override FIRST_ROW: u32;
override ROWS: u32;
override COLUMNS: u32;
override SCALE: f32;
override DRAFTS: u32;
override CONTEXT: u32;
override MAX_ROWS: u32;
override X_FORMAT: u32;

@group(0) @binding(0) var<uniform> step: Step;
@group(0) @binding(1) var<storage, read> weights: array<u32>;
@group(0) @binding(2) var<storage, read> scales: array<u32>;
@group(0) @binding(3) var<storage, read> timeline: array<u32>;
@group(0) @binding(4) var<storage, read> x: array<vec4<u32>>;
@group(0) @binding(5) var<storage, read_write> y: array<vec4<f32>>;
@group(0) @binding(6) var<storage, read_write> draft_steps: array<SpacedStep>;

const workgroup_size = 256u;

@compute @workgroup_size(workgroup_size)
fn main(@builtin(local_invocation_index) local: u32) {
  let is_first = FIRST_ROW == 0u;
  if (is_first && local < DRAFTS) {
    let rows = min(DRAFTS + 1u, min(step.remaining, CONTEXT - min(step.position, CONTEXT)));
    var draft = step;
    draft.position += local;
    draft.rows = select(0u, 1u, step.rows > 0u && rows > local + 1u);
    draft_steps[local].step = draft;
  }
  if (step.rows == 0u) {
    return;
  }
  let token = timeline[min(step.position, CONTEXT)];
  let row = min(step.accepted, MAX_ROWS - 1u);
  for (var quad = local; quad < COLUMNS / 4u; quad += workgroup_size) {
    if (token >= FIRST_ROW && token - FIRST_ROW < ROWS) {
      y[quad] = SCALE * quad_weights((token - FIRST_ROW) * (COLUMNS / 4u) + quad);
    }
    if (is_first) {
      y[COLUMNS / 4u + quad] = x_quad(row * (COLUMNS / 4u), quad);
    }
  }
}
