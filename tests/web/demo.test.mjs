// The sums of the page.
import assert from 'node:assert/strict';
import { test } from 'node:test';

const site = new URL('../../build/web-site/', import.meta.url);
const { Meter } = await import(new URL('meter.js', site));
const { compare, median } = await import(new URL('bench_figures.js', site));
const { isQuantized } = await import(new URL('quantized.js', site));
const { niceCeiling } = await import(new URL('plot.js', site));
const { bytesText } = await import(new URL('dom.js', site));

const round = (generatedTokens, drafted, accepted) => ({ generatedTokens, drafted, accepted });

test('a meter tells the rate and the acceptance of the last second', () => {
  const meter = new Meter(1000);
  assert.equal(meter.add(0, round(1, [0, 0], [0, 0])), undefined);
  assert.deepEqual(meter.add(500, round(6, [2, 2], [2, 1])), {
    tokensPerSecond: 10,
    acceptance: 0.75,
  });
  meter.add(1500, round(8, [3, 3], [2, 1]));
  assert.deepEqual(meter.add(2500, round(12, [4, 4], [3, 2])), {
    tokensPerSecond: 4,
    acceptance: 1,
  });
});

test('a meter without drafts has no acceptance, and none without time a rate', () => {
  const meter = new Meter();
  meter.add(0, round(1, [0, 0], [0, 0]));
  assert.equal(meter.add(0, round(2, [0, 0], [0, 0])), undefined);
  assert.deepEqual(meter.add(100, round(3, [0, 0], [0, 0])), {
    tokensPerSecond: 20,
    acceptance: null,
  });
});

test('medians', () => {
  assert.equal(median([3, 1, 2]), 2);
  assert.equal(median([4, 1, 2, 3]), 2.5);
});

const run = (mode, pair, rate, ids, acceptance = mode === 'mtp' ? 0.5 : 0) => ({
  ...{ mode, pair, ids },
  stats: { decodeTokensPerSecond: rate, acceptance },
});

test('a comparison takes each pair for itself', () => {
  const runs = [run('plain', 0, 10, [1, 2]), run('mtp', 0, 20, [1, 2])];
  assert.deepEqual(compare(runs), { equal: true, speedup: 2 });
  runs.push(run('plain', 1, 5, [1, 2]), run('mtp', 1, 20, [1, 3]));
  assert.deepEqual(compare(runs), { equal: false, speedup: 3 });
});

test('there is no speed-up without a whole pair or without an accepted draft', () => {
  const plain = run('plain', 0, 10, [1]);
  assert.equal(compare([plain]).speedup, null);
  assert.equal(compare([plain, run('mtp', 1, 20, [1])]).speedup, null);
  assert.equal(compare([plain, run('mtp', 0, 20, [1], 0)]).speedup, null);
});

test('times in steps of 100 us are told from exact ones', () => {
  const times = (...ns) => ns.map((timeNs) => ({ timeNs }));
  assert.ok(isQuantized(times(0, 100_000, 300_000)));
  assert.ok(!isQuantized(times(0, 100_000, 300_001)));
  assert.ok(!isQuantized(times(0, 100_000)));
});

test('an axis ends at 1, 2 or 5 times a power of ten', () => {
  assert.deepEqual([0, 0.03, 1, 1.1, 21, 99, 501].map(niceCeiling), [1, 0.05, 1, 2, 50, 100, 1000]);
});

test('sizes have three digits and a unit', () => {
  assert.deepEqual([0, 999, 1000, 12_345_678, 3.4e9].map(bytesText), ['0 B', '999 B', '1.0 KB', '12.3 MB', '3.4 GB']);
});
