// Appends the chosen token to the timeline and moves the step on; see advance.h.
// Shapes: token [1], stop_ids a count and then the ids, timeline [CONTEXT + 1]. One invocation does
// it all. Limits: the step has 0 or 1 rows.

struct Step {
  position: u32,
  rows: u32,
  remaining: u32,
  rounds: u32,
  token: u32,
  stop: u32,
  reserved: vec2<u32>,
}

override CONTEXT: u32;

const STOP_ID = 1u;
const LENGTH = 2u;
const END_OF_CONTEXT = 3u;

@group(0) @binding(0) var<storage, read_write> step: Step;
@group(0) @binding(1) var<storage, read> token: array<u32>;
@group(0) @binding(2) var<storage, read> stop_ids: array<u32>;
@group(0) @binding(3) var<storage, read_write> timeline: array<u32>;

@compute @workgroup_size(1)
fn main() {
  if (step.rows == 0u) {
    return;
  }
  step.token = token[0];
  step.position = min(step.position + 1u, CONTEXT);
  step.remaining -= 1u;
  step.rounds += 1u;
  timeline[step.position] = step.token;

  if (step.position == CONTEXT) {
    step.stop = END_OF_CONTEXT;
  }
  if (step.remaining == 0u) {
    step.stop = LENGTH;
  }
  for (var i = 0u; i < stop_ids[0]; i++) {
    if (stop_ids[i + 1u] == step.token) {
      step.stop = STOP_ID;
    }
  }
  if (step.stop != 0u) {
    step.rows = 0u;
  }
}
