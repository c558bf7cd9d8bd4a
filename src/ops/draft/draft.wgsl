// Takes draft INDEX of a round: into the timeline; a stop id ends the drafts (draft.h).
// Shapes: draft_steps [DRAFTS], token [1], script and timeline [CONTEXT + 1], stop_ids a count and
// then the ids. One invocation does it all. Without SCRIPTED, any view may stand in for script.

//#include step.wgsl

struct SpacedStep {
  @size(256) step: Step,
}

override DRAFTS: u32;
override INDEX: u32;
override CONTEXT: u32;
override SCRIPTED: bool;

const UNSCRIPTED = 0xffffffffu;

@group(0) @binding(0) var<storage, read_write> step: Step;
@group(0) @binding(1) var<storage, read_write> draft_steps: array<SpacedStep>;
@group(0) @binding(2) var<storage, read> token: array<u32>;
@group(0) @binding(3) var<storage, read> script: array<u32>;
@group(0) @binding(4) var<storage, read> stop_ids: array<u32>;
@group(0) @binding(5) var<storage, read_write> timeline: array<u32>;

@compute @workgroup_size(1)
fn main() {
  if (draft_steps[INDEX].step.rows == 0u) {
    return;
  }
  let position = min(step.position + 1u + INDEX, CONTEXT);
  var draft = token[0];
  if (SCRIPTED) {
    if (script[position] != UNSCRIPTED) {
      draft = script[position];
    }
  }
  timeline[position] = draft;
  for (var i = 0u; i < stop_ids[0]; i++) {
    if (stop_ids[i + 1u] == draft) {
      step.rows = INDEX + 2u;
      for (var k = INDEX + 1u; k < DRAFTS; k++) {
        draft_steps[k].step.rows = 0u;
      }
    }
  }
}
