// Begins the drafting of a round: its rows, and the step of each draft (draft.h).
// Shapes: draft_steps [DRAFTS]. One invocation does it all.

//#include step.wgsl

struct SpacedStep {
  @size(256) step: Step,
}

override DRAFTS: u32;
override CONTEXT: u32;

@group(0) @binding(0) var<storage, read_write> step: Step;
@group(0) @binding(1) var<storage, read_write> draft_steps: array<SpacedStep>;

@compute @workgroup_size(1)
fn main() {
  if (step.rows > 0u) {
    step.rows = min(DRAFTS + 1u, min(step.remaining, CONTEXT - min(step.position, CONTEXT)));
  }
  for (var k = 0u; k < DRAFTS; k++) {
    var draft = step;
    draft.position += k;
    draft.rows = select(0u, 1u, step.rows > k + 1u);
    draft_steps[k].step = draft;
  }
}
