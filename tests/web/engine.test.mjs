// The built module under Node, in one load: the golden tokens, with drafts and without, and a round costs one call.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { countImports } from './support/count_imports.mjs';
import { atlas, generate, loaded } from './support/engine.mjs';
import { golden } from './support/golden.mjs';

let engine, session, imports;
before(async () => {
  imports = countImports();
  engine = await loaded('gemma4_mtp');
  imports.restore();
  session = await engine.session();
});
after(() => engine?.unload());

const run = (prompt, options) => {
  session.reset();
  return generate(session, golden(prompt).ids, { maxTokens: 16, ignoreEos: true, ...options });
};

test('drafts change no token, and fewer rounds give them', async () => {
  const seeded = { temperature: 0.8, topK: 40, topP: 0.95, seed: 2n ** 63n + 1n };
  for (const sampling of [{ temperature: 0 }, seeded]) {
    for (const prompt of ['short', 'profile']) {
      const plain = await run(prompt, { sampling, mtp: 'off' });
      const drafted = await run(prompt, { sampling, mtp: 'on' });
      assert.deepEqual(drafted.ids, plain.ids);
      assert.equal(drafted.text, plain.text);
      assert.ok(drafted.stats.rounds < plain.stats.rounds);
      assert.equal(plain.stats.drafted[0], 0);
      if (sampling !== seeded) assert.deepEqual(plain.ids, golden(prompt).greedy.slice(0, 16));
    }
  }
});

test('a round costs one call from wasm', async () => {
  for (const mtp of ['on', 'off']) {
    session.reset();
    session.start(golden('short').ids, { maxTokens: 16, ignoreEos: true, mtp });
    await session.step();
    imports.counts.clear();
    const before = engine.census();
    while (session.running) await session.step();
    const after = engine.census();
    const submissions = after.submissions - before.submissions;
    assert.ok(submissions > 0);
    assert.deepEqual([...imports.counts], [['tandem_gpu_submit', submissions]]);
    assert.equal(after.crossings - before.crossings, submissions);
  }
});

test('activations are f32 or int8, and nothing else', async () => {
  assert.equal(engine.info.activations, 'f32');
  for (const activations of ['f32', 'int8']) {
    assert.equal((await engine.plan(atlas.manifest, { activations })).refusal, null);
  }
  await assert.rejects(engine.plan(atlas.manifest, { activations: 'int4' }), {
    code: 'bad_value',
    message: 'options: activations: expected f32 or int8, found int4',
  });
});
