// Takes draft INDEX of a round: the token of the largest score, the lowest of equals, into the
// timeline; a stop id ends the drafts (draft.h).
// Shapes: draft_steps [DRAFTS], tokens and scores [SCORED], script and timeline [CONTEXT + 1],
// stop_ids a count and then the ids. One workgroup does it all, by comparisons of integers. Any view
// may stand in for the scores of a single token and, without SCRIPTED, for script.

//#include step.wgsl
//#include ordered.wgsl
//#include best_of_workgroup.wgsl

struct SpacedStep {
  @size(256) step: Step,
}

override DRAFTS: u32;
override INDEX: u32;
override CONTEXT: u32;
override SCORED: u32;
override SCRIPTED: bool;

const UNSCRIPTED = 0xffffffffu;
const INVOCATIONS = 256u;

@group(0) @binding(0) var<storage, read_write> step: Step;
@group(0) @binding(1) var<storage, read_write> draft_steps: array<SpacedStep>;
@group(0) @binding(2) var<storage, read> tokens: array<u32>;
@group(0) @binding(3) var<storage, read> scores: array<f32>;
@group(0) @binding(4) var<storage, read> script: array<u32>;
@group(0) @binding(5) var<storage, read> stop_ids: array<u32>;
@group(0) @binding(6) var<storage, read_write> timeline: array<u32>;

fn take(chosen: u32) {
  if (draft_steps[INDEX].step.rows == 0u) {
    return;
  }
  if (INDEX == 0u) {
    step.rows = 1u;
    for (var k = 0u; k < DRAFTS; k++) {
      step.rows += draft_steps[k].step.rows;
    }
  }
  let position = min(step.position + 1u + INDEX, CONTEXT);
  var draft = chosen;
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

@compute @workgroup_size(INVOCATIONS)
fn main(@builtin(local_invocation_index) invocation: u32) {
  var value = 0u;
  var token = 0u;
  for (var i = invocation; i < SCORED; i += INVOCATIONS) {
    let candidate = select(ordered(scores[i]), 1u, SCORED == 1u);
    if (candidate > value || (candidate == value && tokens[i] < token)) {
      value = candidate;
      token = tokens[i];
    }
  }
  let best = best_of_workgroup(Best(value, token), value != 0u, invocation);
  if (invocation == 0u) {
    take(best.token);
  }
}
