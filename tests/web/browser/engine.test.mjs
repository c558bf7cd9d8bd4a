// The engine in Chromium, on its software adapter: what it generates, how it ends, and what it refuses.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { countImports } from '../support/count_imports.mjs';
import { loadAtlas, startEngine } from '../support/engine_page.mjs';
import { golden } from '../support/golden.mjs';

const { ids, greedy } = golden('short');
let site, page;
before(async () => {
  site = await startEngine();
  page = await site.open();
  const { engine, info } = await loadAtlas(page, { release: '/release.json', context: 256 });
  assert.deepEqual([engine.target, engine.profile, info.drafts], ['mtp', false, 2]);
});
after(() => site?.close());

test('MTP and plain give the tokens that transformers gives', async () => {
  const results = await page.evaluate(async (ids) => {
    const results = [];
    for (const mtp of ['on', 'off']) {
      const session = window.model.session();
      results.push(await window.generate(session, ids, { mtp, maxTokens: 16 }));
      await session.close();
    }
    return results;
  }, ids);
  for (const { ids } of results) assert.deepEqual(ids, greedy.slice(0, 16));
  const [mtp, plain] = results.map((result) => result.stats);
  assert.ok(mtp.rounds < plain.rounds && mtp.accepted[0] > 0, JSON.stringify(mtp));
  assert.deepEqual(plain.drafted, [0, 0]);
});

test('seeded sampling is the same with drafts and without', async () => {
  const [mtp, plain] = await page.evaluate(async (ids) => {
    const results = [];
    for (const mtp of ['on', 'off']) {
      const session = window.model.session();
      const options = { mtp, maxTokens: 10, temperature: 1, topK: 50, seed: 7n };
      results.push((await window.generate(session, ids, options)).ids);
      await session.close();
    }
    return results;
  }, ids);
  assert.deepEqual(mtp, plain);
});

test('an answer after aborts, and after a reset, is that of a new session', async () => {
  const results = await page.evaluate(async (ids) => {
    const session = window.model.session();
    const options = { mtp: 'on', maxTokens: 12 };
    const before = session.generate(Uint32Array.from(ids), { signal: AbortSignal.abort() });
    const ends = [(await before.result).stop];
    for (let i = 0; i < 2; i++) {
      const aborted = session.generate(Uint32Array.from(ids), { maxTokens: 200, ignoreEos: true });
      for await (const piece of aborted) if (piece) break;
      aborted.abort();
      ends.push((await aborted.result).stop);
    }
    const afterAborts = await window.generate(session, ids, options);
    await session.reset();
    const afterReset = await window.generate(session, ids, options);
    await session.close();
    return { ends, answers: [afterAborts.ids, afterReset.ids] };
  }, ids);
  assert.deepEqual(results.ends, ['aborted', 'aborted', 'aborted']);
  for (const answer of results.answers) assert.deepEqual(answer, greedy.slice(0, 12));
});

test('generations make no buffers and no pipelines', async () => {
  const { counts, rounds } = await page.evaluate(async (ids) => {
    const session = window.model.session();
    const counts = [];
    let rounds;
    for (let i = 0; i < 3; i++) {
      await session.reset();
      rounds = (await window.generate(session, ids, { mtp: 'on', maxTokens: 6 })).stats.rounds;
      counts.push(await window.model.census());
    }
    await session.close();
    return { counts, rounds };
  }, ids);
  const [, second, third] = counts;
  for (const key of ['buffers', 'bufferBytes', 'pipelines', 'heapBytes']) {
    assert.equal(third[key], second[key], key);
  }
  assert.ok(third.submissions - second.submissions >= rounds);
  assert.ok(third.heapBytes < 64 << 20, `${third.heapBytes} bytes of wasm memory`);
});

test('a round is one call from wasm', async () => {
  const own = await site.open();
  const { calls, submissions } = await own.evaluate(
    async ([countImports, ids]) => {
      const { counts, restore } = new Function(`return (${countImports})();`)();
      const { Tandem } = await import('/tandem/index.js');
      const model = await Tandem.load('/atlas', { worker: false, context: 64 });
      restore();
      const generation = model.session().generate(Uint32Array.from(ids), { mtp: 'on', maxTokens: 32, ignoreEos: true });
      let before;
      for await (const piece of generation) {
        if (!piece || before) continue;
        counts.clear();
        before = model.census();
      }
      const calls = [...counts];
      const submissions = (await model.census()).submissions - (await before).submissions;
      await model.dispose();
      return { calls, submissions };
    },
    [String(countImports), ids],
  );
  await own.close();
  assert.ok(submissions > 0);
  assert.deepEqual(calls, [['tandem_gpu_submit', submissions]]);
});

test('sessions answer side by side, each its own', async () => {
  const other = golden('profile');
  const results = await page.evaluate(
    async (prompts) => {
      const sessions = prompts.map(() => window.model.session());
      const answers = await Promise.all(
        sessions.map((session, i) => window.generate(session, prompts[i], { maxTokens: 6 })),
      );
      for (const session of sessions) await session.close();
      return answers.map((answer) => answer.ids);
    },
    [ids, other.ids],
  );
  assert.deepEqual(results, [greedy.slice(0, 6), other.greedy.slice(0, 6)]);
});

test('a conversation goes on from what its session remembers', async () => {
  const result = await page.evaluate(async () => {
    const session = window.model.session();
    const ask = (content) => session.generate([{ role: 'user', content }], { temperature: 0, maxTokens: 24 }).result;
    const first = await ask('What is the capital of France?');
    const second = await ask('And of Italy?');
    await session.close();
    return [first.text, second.text, second.stats.reusedTokens];
  });
  assert.deepEqual(result.slice(0, 2), ['The capital of France is Paris.', 'The capital of Italy is Rome.']);
  assert.ok(result[2] > 16, `${result[2]} tokens reused`);
});

for (const [what, prompt, options, code] of [
  ['a prompt beyond the context', Array(300).fill(2), {}, 'context_exceeded'],
  ['an id outside the vocabulary', [2, 8192], {}, 'malformed_text'],
  ['an empty prompt', [], {}, 'invalid_argument'],
  ['no tokens', [2], { maxTokens: 0 }, 'invalid_argument'],
  ['a temperature below 0', [2], { temperature: -1 }, 'invalid_argument'],
]) {
  test(`${what} is refused, and the session goes on`, async () => {
    const result = await page.evaluate(
      async ([prompt, options]) => {
        const session = window.model.session();
        const refused = await window.generate(session, prompt, options).catch((e) => e.code);
        const { ids } = await window.generate(session, [2], { maxTokens: 1 });
        await session.close();
        return { refused, tokens: ids.length };
      },
      [prompt, options],
    );
    assert.deepEqual(result, { refused: code, tokens: 1 });
  });
}

// On the page, where the test reaches WebGPU itself.
const loadOnPage = async (options, before = '') => {
  const own = await site.open();
  try {
    return await own.evaluate(
      async ([options, before]) => {
        await new Function(before)();
        const { Tandem } = await import('/tandem/index.js');
        return Tandem.load('/atlas', { worker: false, ...options }).then(
          () => null,
          ({ name, code, message }) => ({ name, code, message }),
        );
      },
      [options, before],
    );
  } finally {
    await own.close();
  }
};
const takeGpu = (value) => `Object.defineProperty(Object.getPrototypeOf(navigator), 'gpu', { value: ${value} })`;

test('a browser without WebGPU, and one without adapter, are told apart from others', async () => {
  for (const gpu of ['undefined', '{ requestAdapter: async () => null }']) {
    const { name, code } = await loadOnPage({}, takeGpu(gpu));
    assert.deepEqual([name, code], ['TandemError', 'no_adapter']);
  }
});

test('limits that are too small are told with the numbers', async () => {
  const limits = { maxBufferSize: 1 << 20, maxStorageBufferBindingSize: 1 << 20 };
  const { code, message } = await loadOnPage({ limits });
  assert.equal(code, 'limit_exceeded');
  assert.match(message, /1048576/);
});

test('a plan has the numbers, and allocates nothing', async () => {
  const plan = await page.evaluate(() => window.Tandem.plan('/atlas', { context: 256 }));
  assert.equal(plan.refusal, null);
  assert.equal(plan.context, 256);
  assert.ok(plan.weightBytes > 8e6 && plan.weightBytes < plan.downloadBytes * 1.2);
  assert.ok(plan.adapter.software);
});
