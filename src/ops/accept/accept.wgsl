// Ends a round: accepts drafts, appends what the target chose to the timeline and moves the step on;
// see accept.h.
// Shapes: targets [DRAFTS + 1], logits [DRAFTS + 1][COLUMNS], stop_ids a count and then the ids,
// timeline [CONTEXT + 1]. One invocation does it all. Limits: DRAFTS <= MAX_DRAFTS; step.remaining > 0 unless the step
// has no rows.

//#include step.wgsl

const MAX_DRAFTS = 3u;

struct RoundRecord {
  number: u32,
  position: u32,
  rows: u32,
  count: u32,
  accepted: u32,
  stop: u32,
  drafts: array<u32, MAX_DRAFTS>,
  targets: array<u32, MAX_DRAFTS + 1u>,
  logits: array<u32, MAX_DRAFTS + 1u>,
}

override CONTEXT: u32;
override DRAFTS: u32;
override COLUMNS: u32;

const STOP_ID = 1u;
const LENGTH = 2u;
const END_OF_CONTEXT = 3u;

@group(0) @binding(0) var<storage, read_write> step: Step;
@group(0) @binding(1) var<storage, read> targets: array<u32>;
// As bits, which a compiler may not take for finite.
@group(0) @binding(2) var<storage, read> logits: array<u32>;
@group(0) @binding(3) var<storage, read> stop_ids: array<u32>;
@group(0) @binding(4) var<storage, read_write> timeline: array<u32>;
@group(0) @binding(5) var<storage, read_write> result: RoundRecord;

fn is_stop_id(token: u32) -> bool {
  for (var i = 0u; i < stop_ids[0]; i++) {
    if (stop_ids[i + 1u] == token) {
      return true;
    }
  }
  return false;
}

@compute @workgroup_size(1)
fn main() {
  if (step.rows == 0u) {
    return;
  }
  step.position = min(step.position, CONTEXT - 1u);
  let next = step.position + 1u;  // where the first token emitted goes
  let rows = min(min(step.rows, DRAFTS + 1u), min(step.remaining, CONTEXT - step.position));

  var record = RoundRecord();
  record.number = step.rounds + 1u;
  record.position = step.position;
  record.rows = rows;
  for (var i = 0u; i < rows; i++) {
    record.targets[i] = targets[i];
    record.logits[i] = logits[i * COLUMNS + min(targets[i], COLUMNS - 1u)];
    if (i + 1u < rows) {
      record.drafts[i] = timeline[next + i];
    }
  }
  while (record.accepted + 1u < rows &&
         record.drafts[record.accepted] == record.targets[record.accepted]) {
    record.accepted++;
  }
  while (record.count <= record.accepted && record.stop == 0u) {
    step.token = record.targets[record.count];
    timeline[next + record.count] = step.token;
    record.count++;
    if (is_stop_id(step.token)) {
      record.stop = STOP_ID;
    }
  }

  step.position += record.count;
  step.remaining -= record.count;
  if (record.stop == 0u && step.remaining == 0u) {
    record.stop = LENGTH;
  }
  if (record.stop == 0u && step.position == CONTEXT) {
    record.stop = END_OF_CONTEXT;
  }
  step.rows = select(0u, 1u, record.stop == 0u);
  step.stop = record.stop;
  step.accepted = record.accepted;
  result = record;
  step.rounds++;
}
