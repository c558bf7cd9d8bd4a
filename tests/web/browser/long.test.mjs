// What takes long in Chromium: every build on the page and in a worker, many generations, many loads.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { loadAtlas, startEngine } from '../support/engine_page.mjs';
import { golden } from '../support/golden.mjs';

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

test('twenty generations leave GPU, wasm memory and JavaScript heap as they were', async () => {
  const page = await site.open();
  await loadAtlas(page, { worker: false, context: 256 });
  const devtools = await site.context.newCDPSession(page);
  const measure = async () => {
    await devtools.send('HeapProfiler.collectGarbage');
    const { usedSize } = await devtools.send('Runtime.getHeapUsage');
    return { ...(await page.evaluate(() => window.model.census())), usedSize };
  };
  await page.evaluate(() => void (window.session = window.model.session()));
  const counts = [];
  for (let i = 0; i < 20; i++) {
    await page.evaluate(async (ids) => {
      await window.session.reset();
      await window.generate(window.session, ids, { mtp: 'on', maxTokens: 8 });
    }, prompts[0].ids);
    counts.push(await measure());
  }
  for (const key of ['buffers', 'bufferBytes', 'pipelines', 'heapBytes']) {
    assert.equal(counts[19][key], counts[1][key], key);
  }
  const grown = counts[19].usedSize - counts[1].usedSize;
  assert.ok(grown < 500_000, `the heap grew by ${grown} bytes`);
  await page.close();
});

test('twenty loads and unloads leave nothing', async () => {
  const page = await site.open();
  const result = await page.evaluate(async () => {
    const { Tandem } = await import('/tandem/index.js');
    const buffers = new Set();
    const create = GPUDevice.prototype.createBuffer;
    GPUDevice.prototype.createBuffer = function (...descriptor) {
      const buffer = create.apply(this, descriptor);
      buffers.add(buffer);
      return buffer;
    };
    const destroy = GPUBuffer.prototype.destroy;
    GPUBuffer.prototype.destroy = function () {
      buffers.delete(this);
      return destroy.apply(this);
    };
    const unhandled = [];
    addEventListener('unhandledrejection', (event) => unhandled.push(String(event.reason)));
    let made = 0;
    for (let i = 0; i < 20; i++) {
      const model = await Tandem.load('/atlas', { worker: false, context: 64 });
      made = Math.max(made, buffers.size);
      await model.dispose();
    }
    return { made, left: buffers.size, unhandled };
  });
  assert.ok(result.made > 10);
  assert.deepEqual([result.left, result.unhandled], [0, []]);
  await page.close();
});

test('a lost device is one typed error, and the page can load again', async () => {
  const page = await site.open();
  const result = await page.evaluate(async (ids) => {
    const { Tandem } = await import('/tandem/index.js');
    const unhandled = [];
    addEventListener('unhandledrejection', (event) => unhandled.push(String(event.reason)));
    // The engine asks for a device of its page; the test keeps hold of it to lose it.
    const devices = [];
    const request = GPUAdapter.prototype.requestDevice;
    GPUAdapter.prototype.requestDevice = async function (...descriptor) {
      devices.push(await request.apply(this, descriptor));
      return devices.at(-1);
    };
    const options = { worker: false, mtp: 'off', context: 256 };
    const model = await Tandem.load('/atlas', options);
    const session = model.session();
    const endless = { ignoreEos: true, temperature: 0, maxTokens: 200 };
    const generation = session.generate(Uint32Array.from(ids), endless);
    const errors = [];
    try {
      for await (const piece of generation) if (piece) devices[0].destroy();
    } catch ({ code }) {
      errors.push(code);
    }
    errors.push(await session.generate('a').result.catch(({ code }) => code));
    await model.dispose();

    const next = await Tandem.load('/atlas', options);
    const answer = await next.session().generate(Uint32Array.from(ids), { ...endless, maxTokens: 4 }).result;
    await next.dispose();
    return { errors, unhandled, ids: answer.ids, devices: devices.length };
  }, prompts[0].ids);
  await page.close();
  assert.deepEqual(result.errors, ['device_lost', 'device_lost']);
  assert.deepEqual(result.unhandled, []);
  assert.equal(result.devices, 2);
  assert.deepEqual(result.ids, prompts[0].greedy.slice(0, 4));
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
  assert.deepEqual(info.tiers, []);
  const { ids, greedy } = prompts[0];
  const answer = await page.evaluate(
    (ids) => window.generate(window.model.session(), ids, { mtp: 'on', maxTokens: 24 }),
    ids,
  );
  assert.deepEqual(answer.ids, greedy.slice(0, 24));
  await page.close();
});
