// The built modules under Node at length: every golden token, and all that a session can be asked for.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { generate, goldenIds, gpu, loaded } from './support/engine.mjs';
import { goldenInt8 } from './support/golden.mjs';

const golden = await goldenIds('target.safetensors');
const prompts = golden.names.filter((name) => name.endsWith('.greedy')).map((name) => name.slice(0, -'.greedy'.length));
const question = [{ role: 'user', content: 'What is the capital of France?' }];

for (const module of ['webgpu_llama', 'gemma4_mtp']) {
  describe(module, () => {
    let engine;
    let session;
    before(async () => {
      engine = await loaded(module);
      session = await engine.session();
    });
    after(() => engine.unload());

    test('says what it is', () => {
      assert.equal(engine.target, module === 'gemma4_mtp' ? 'mtp' : 'plain');
      assert.equal(engine.profile, false);
      assert.match(engine.kernelClosure, /^[0-9a-f]{64}$/);
      assert.equal(engine.info.kernelClosure, engine.kernelClosure);
      assert.equal(engine.info.drafts, module === 'gemma4_mtp' ? 2 : 0);
    });

    for (const name of prompts) {
      test(`the golden tokens after ${name}`, async () => {
        const expected = golden.ids(`${name}.greedy`);
        const options = { maxTokens: expected.length, ignoreEos: true, sampling: { temperature: 0 }, mtp: 'automatic' };
        session.reset();
        assert.deepEqual((await generate(session, golden.ids(`${name}.ids`), options)).ids, expected);
      });
    }

    test('nothing is made after the load, and nothing grows', async () => {
      const prompt = engine.encodeChat(question);
      const census = [];
      for (let i = 0; i < 20; ++i) {
        session.reset();
        await generate(session, prompt, { maxTokens: 6 });
        const { buffers, bufferBytes, pipelines, heapBytes } = engine.census();
        census.push({ buffers, bufferBytes, pipelines, heapBytes });
      }
      assert.deepEqual(census[19], census[1]);
      assert.equal(census[19].pipelines, engine.info.kernels);
      assert.ok(census[19].heapBytes < 64 << 20);
    });

    test('text comes in pieces, and ends with the stop id', async () => {
      session.reset();
      const { pieces, text, stop, stats, ids } = await generate(session, engine.encodeChat(question), {});
      assert.equal(pieces.join(''), text);
      assert.match(text, /Paris/);
      assert.equal(stop, 'stop_id');
      assert.equal(stats.generatedTokens, ids.length);
    });

    test('a conversation goes on where it was', async () => {
      session.reset();
      await generate(session, engine.encodeChat(question), { maxTokens: 12 });
      const prompt = session.nextPrompt([{ role: 'user', content: 'And of Spain?' }]);
      const again = await engine.session();
      const options = { maxTokens: 12 };
      const first = await generate(session, prompt, options);
      const fresh = await generate(again, prompt, options);
      assert.deepEqual(first.ids, fresh.ids);
      assert.ok(first.stats.reusedTokens > 0);
      assert.equal(fresh.stats.reusedTokens, 0);
      again.close();
      assert.throws(() => again.start(prompt, {}), { code: 'invalid_argument' });
    });

    test('sessions take turns', async () => {
      const prompt = engine.encodeChat(question);
      const other = await engine.session();
      const otherPrompt = engine.encodeChat([{ role: 'user', content: 'Tell me about Japan.' }]);
      const options = { maxTokens: 16, ignoreEos: true };
      session.reset();
      const alone = [(await generate(session, prompt, options)).ids, (await generate(other, otherPrompt, options)).ids];
      session.reset();
      other.reset();
      session.start(prompt, options);
      other.start(otherPrompt, options);
      while (session.running || other.running) {
        if (session.running) await session.step();
        if (other.running) await other.step();
      }
      assert.deepEqual([session.generation().ids, other.generation().ids], alone);
      other.close();
    });

    test('aborted anywhere, the next generation is as a fresh one', async () => {
      const prompt = engine.encodeChat(question);
      const options = { maxTokens: 12, ignoreEos: true };
      session.reset();
      const fresh = (await generate(session, prompt, options)).ids;
      for (const steps of [0, 1, 3]) {
        session.reset();
        session.start(prompt, options);
        for (let i = 0; i < steps; ++i) await session.step();
        session.abort();
        assert.equal(session.abort(), '', 'a second abort does nothing');
        assert.equal(session.running, false);
        assert.equal(session.generation().stop, 'aborted');
        session.reset();
        assert.deepEqual((await generate(session, prompt, options)).ids, fresh, `after ${steps} steps`);
      }
    });

    test('an abort ends a step that is waiting', async () => {
      session.reset();
      session.start(engine.encodeChat(question), { maxTokens: 12 });
      const step = session.step();
      session.abort();
      assert.equal(await step, '');
      session.reset();
    });

    test('wrong requests are refused and change nothing', async () => {
      const prompt = engine.encodeChat(question);
      session.reset();
      const { ids } = await generate(session, prompt, { maxTokens: 4 });
      const timeline = session.ids();
      const wrong = [
        [[], {}, 'invalid_argument'],
        [[8192], {}, 'malformed_text'],
        [[1.5], {}, 'malformed_text'],
        [prompt, { maxTokens: 0 }, 'invalid_argument'],
        [prompt, { maxTokens: 'many' }, 'wrong_type'],
        [prompt, { max_tokens: 3 }, 'unknown_key'],
        [prompt, { sampling: { temperature: -1 } }, 'invalid_argument'],
        [prompt, { sampling: { seed: 'x' } }, 'bad_value'],
        [prompt, { mtp: 'maybe' }, 'bad_value'],
        [Array(engine.info.context + 1).fill(5), {}, 'context_exceeded'],
      ];
      for (const [ids, options, code] of wrong) assert.throws(() => session.start(ids, options), { code });
      assert.throws(() => engine.encodeChat([{ role: 'wizard', content: '' }]), { name: 'TandemError' });
      assert.throws(() => engine.check({ stopStrings: [''] }), { code: 'invalid_argument' });
      assert.deepEqual(session.ids(), timeline);
      assert.equal(ids.length, 4);
      await assert.rejects(session.step(), { code: 'invalid_argument' });
    });

    test('a wall build has no times', async () => {
      assert.deepEqual(session.times(), []);
    });
  });
}

test('without subgroups the tokens are the same', async () => {
  const engine = await loaded('webgpu_llama', { disabledTiers: ['subgroups', 'f16', 'dp4a'] });
  assert.deepEqual(engine.info.tiers, ['base']);
  const session = await engine.session();
  const expected = golden.ids('short.greedy');
  const options = { maxTokens: expected.length, ignoreEos: true, sampling: { temperature: 0 } };
  assert.deepEqual((await generate(session, golden.ids('short.ids'), options)).ids, expected);
  await engine.unload();
});

for (const [adapter, options, packed] of [
  ['an adapter that has packed integer products', {}, true],
  ['one that has none', { gpu: { requestAdapter: (options) => gpu.requestAdapter(options) } }, false],
]) {
  test(`int8 activations give their golden tokens on ${adapter}`, async () => {
    const engine = await loaded('gemma4_mtp', { activations: 'int8', ...options });
    assert.deepEqual([engine.info.activations, engine.info.tiers.includes('dp4a')], ['int8', packed]);
    const session = await engine.session();
    const { ids, greedy } = goldenInt8('profile');
    for (const mtp of ['on', 'off']) {
      session.reset();
      const asked = { maxTokens: 24, ignoreEos: true, sampling: { temperature: 0 }, mtp };
      assert.deepEqual((await generate(session, ids, asked)).ids, greedy.slice(0, 24));
    }
    const { text } = await generate(session, engine.encodeChat(question), { sampling: { temperature: 0 } });
    assert.equal(text, 'The capital of France is Paris.');
    await engine.unload();
  });
}

test('a profile build tells the time of each kernel', async () => {
  const engine = await loaded('gemma4_mtp.profile');
  assert.equal(engine.profile, true);
  const session = await engine.session();
  const expected = golden.ids('short.greedy').slice(0, 8);
  const options = { maxTokens: 8, ignoreEos: true, sampling: { temperature: 0 }, mtp: 'on' };
  assert.deepEqual((await generate(session, golden.ids('short.ids'), options)).ids, expected);
  const times = session.times();
  assert.ok(times.some(({ kernel }) => kernel.startsWith('linear_row')));
  assert.ok(times.every(({ calls, timeNs }) => calls > 0 && timeNs >= 0));
  assert.ok(times.reduce((sum, { timeNs }) => sum + timeNs, 0) > 0);
  assert.deepEqual(session.times(), [], 'they are told once');
  await engine.unload();
});
