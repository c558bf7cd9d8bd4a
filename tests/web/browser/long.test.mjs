// What takes long in Chromium: every build on the page and in a worker, many generations, many loads.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { loadAtlas, startEngine } from '../support/engine_page.mjs';
import { golden, goldenInt8 } from '../support/golden.mjs';

let site;
before(async () => {
  site = await startEngine();
});
after(() => site?.close());

const prompts = ['short', 'non_latin', 'empty', 'profile', 'multi_turn'].map(golden);

for (const mtp of ['auto', 'off']) {
  for (const profile of [false, true]) {
    for (const worker of [true, false]) {
      const target = mtp === 'off' ? 'plain' : 'mtp';
      const what = `the ${target} ${profile ? 'profile' : 'wall'} build`;

      test(`${what} gives the golden tokens ${worker ? 'in a worker' : 'on the page'}`, async () => {
        const page = await site.open();
        const options = { mtp, profile, worker, release: '/release.json' };
        const { engine } = await loadAtlas(page, options);
        assert.deepEqual([engine.target, engine.profile], [target, profile]);
        for (const { ids, greedy } of prompts) {
          const result = await page.evaluate(
            async ([ids, mtp]) => {
              const session = window.model.session();
              const options = { maxTokens: 24, mtp: mtp === 'off' ? 'off' : 'on' };
              const answer = await window.generate(session, ids, options);
              const times = await session.times();
              await session.close();
              return { ids: answer.ids, kernels: times.length };
            },
            [ids, mtp],
          );
          assert.deepEqual(result.ids, greedy.slice(0, 24));
          assert.equal(result.kernels > 0, profile);
        }
        await page.close();
      });
    }
  }
}

// The JavaScript heap after a collection, in bytes.
async function heapOf(page) {
  const devtools = await site.context.newCDPSession(page);
  return async () => {
    await devtools.send('HeapProfiler.collectGarbage');
    return (await devtools.send('Runtime.getHeapUsage')).usedSize;
  };
}

test('twenty generations leave GPU, wasm memory and JavaScript heap as they were', async () => {
  const page = await site.open();
  await loadAtlas(page, { worker: false, context: 256 });
  const heap = await heapOf(page);
  await page.evaluate(() => void (window.session = window.model.session()));
  const counts = [];
  for (let i = 0; i < 20; i++) {
    await page.evaluate(async (ids) => {
      await window.session.reset();
      await window.generate(window.session, ids, { mtp: 'on', maxTokens: 8 });
    }, prompts[0].ids);
    counts.push({ ...(await page.evaluate(() => window.model.census())), heap: await heap() });
  }
  for (const key of ['buffers', 'bufferBytes', 'pipelines', 'heapBytes']) {
    assert.equal(counts[19][key], counts[1][key], key);
  }
  const grown = counts[19].heap - counts[1].heap;
  assert.ok(grown < 500_000, `the heap grew by ${grown} bytes`);
  await page.close();
});

test('twenty loads and unloads leave nothing', async () => {
  const page = await site.open();
  const heap = await heapOf(page);
  await page.evaluate(() => {
    window.buffers = new Set();
    const create = GPUDevice.prototype.createBuffer;
    GPUDevice.prototype.createBuffer = function (...descriptor) {
      const buffer = create.apply(this, descriptor);
      window.buffers.add(buffer);
      return buffer;
    };
    const destroy = GPUBuffer.prototype.destroy;
    GPUBuffer.prototype.destroy = function () {
      window.buffers.delete(this);
      return destroy.apply(this);
    };
  });
  const heaps = [];
  for (let i = 0; i < 20; i++) {
    const { made, left } = await page.evaluate(
      async (mtp) => {
        const { Tandem } = await import('/tandem/index.js');
        const model = await Tandem.load('/atlas', { mtp, worker: false, context: 64 });
        const made = window.buffers.size;
        await model.dispose();
        return { made, left: window.buffers.size };
      },
      i % 2 ? 'auto' : 'off',
    );
    assert.ok(made > 10);
    assert.equal(left, 0);
    heaps.push(await heap());
  }
  const grown = heaps[19] - heaps[1];
  assert.ok(grown < 2_000_000, `the heap grew by ${grown} bytes`);
  assert.deepEqual(page.problems, []);
  await page.close();
});

test('a lost device is one typed error, the page can load again, and an unload is no loss', async () => {
  const page = await site.open();
  const result = await page.evaluate(async (ids) => {
    const { Tandem } = await import('/tandem/index.js');
    // The engine asks for a device of its page; the test keeps hold of it to lose it.
    const devices = [];
    const request = GPUAdapter.prototype.requestDevice;
    GPUAdapter.prototype.requestDevice = async function (...descriptor) {
      devices.push(await request.apply(this, descriptor));
      return devices.at(-1);
    };
    const options = { worker: false, mtp: 'off', context: 256 };
    const endless = { ignoreEos: true, temperature: 0, maxTokens: 200 };
    const answer = (model, more) => model.session().generate(Uint32Array.from(ids), { ...endless, ...more });

    const model = await Tandem.load('/atlas', options);
    const errors = [];
    const session = model.session();
    try {
      const generation = session.generate(Uint32Array.from(ids), endless);
      for await (const piece of generation) if (piece) devices[0].destroy();
    } catch ({ code }) {
      errors.push(code);
    }
    errors.push(await session.generate('a').result.catch(({ code }) => code));
    await model.dispose();

    const next = await Tandem.load('/atlas', options);
    const again = (await answer(next, { maxTokens: 4 }).result).ids;
    const unloaded = answer(next);
    for await (const piece of unloaded) if (piece) await next.dispose();
    const { stop } = await unloaded.result;
    return { errors, again, stop, devices: devices.length };
  }, prompts[0].ids);
  assert.deepEqual(result, {
    errors: ['device_lost', 'device_lost'],
    again: prompts[0].greedy.slice(0, 4),
    stop: 'aborted',
    devices: 2,
  });
  assert.deepEqual(page.problems, []);
  await page.close();
});

test('the example of the README says what the README says', async () => {
  const page = await site.open('/example.html');
  await page.waitForFunction(() => /\.$/.test(document.querySelector('#answer').textContent));
  assert.equal(await page.textContent('#answer'), 'The capital of France is Paris.');
  assert.deepEqual(page.problems, []);
});

test('the faster routes can be kept off, with the same tokens', async () => {
  const page = await site.open();
  const { info } = await loadAtlas(page, { disabledTiers: ['subgroups', 'dp4a', 'f16'] });
  assert.deepEqual(info.tiers, ['base']);
  const { ids, greedy } = prompts[0];
  const answer = await page.evaluate(
    (ids) => window.generate(window.model.session(), ids, { mtp: 'on', maxTokens: 24 }),
    ids,
  );
  assert.deepEqual(answer.ids, greedy.slice(0, 24));
  await page.close();
});

test('int8 activations give their golden tokens, with packed integer products and without', async () => {
  const { ids, greedy } = goldenInt8('profile');
  for (const disabledTiers of [[], ['dp4a']]) {
    const page = await site.open();
    const { info } = await loadAtlas(page, { activations: 'int8', profile: true, context: 256, disabledTiers });
    assert.deepEqual([info.activations, info.tiers.includes('dp4a')], ['int8', disabledTiers.length === 0]);
    const [answer, times] = await page.evaluate(async (ids) => {
      const session = window.model.session();
      return [await window.generate(session, ids, { mtp: 'on', maxTokens: 24 }), await session.times()];
    }, ids);
    assert.deepEqual(answer.ids, greedy.slice(0, 24));
    const kernels = times.map(({ kernel }) => kernel).join();
    for (const name of [/\blinear_int8/, /\blinear_tiled_int8/]) assert.match(kernels, name);
    await page.close();
  }
});
