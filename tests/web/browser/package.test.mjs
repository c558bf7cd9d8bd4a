// The package in a browser, over an engine without a GPU: its worker and its cache are real.
import assert from 'node:assert/strict';
import { after, afterEach, before, beforeEach, test } from 'node:test';
import { launch, openPage } from '../support/browser.mjs';
import { serveFakeSite } from '../support/site.mjs';

let server, browser, context, page, kept;

before(async () => {
  server = await serveFakeSite();
  kept = new Map(server.files);
  browser = await launch();
});
after(async () => {
  await browser?.close();
  await server?.close();
});
beforeEach(async () => {
  server.files.clear();
  for (const [path, bytes] of kept) server.files.set(path, bytes);
  for (const fault of Object.keys(server.faults)) delete server.faults[fault];
  context = await browser.newContext();
  page = await openPage(context, `${server.origin}/blank.html`);
});
afterEach(() => context.close());

// Loads, asks and disposes; gives the answer, or the error as data.
const answer = (options = {}) =>
  page.evaluate(async (options) => {
    const { Tandem } = await import('/tandem/index.js');
    const warnings = [];
    try {
      const model = await Tandem.load('/atlas', { ...options, onWarning: (w) => warnings.push(w) });
      const { text } = await model.session().generate('one two three').result;
      await model.dispose();
      return { text, warnings };
    } catch ({ name, code, message }) {
      return { name, code, message, warnings };
    }
  }, options);

const shards = () => server.requests.filter(({ path }) => path.endsWith('.safetensors'));
const changeEntries = (change) =>
  page.evaluate(async (change) => {
    const root = await navigator.storage.getDirectory();
    const folder = await root.getDirectoryHandle('tandem-pieces');
    let count = 0;
    for await (const handle of folder.values()) {
      if (change) {
        const { size } = await handle.getFile();
        const stream = await handle.createWritable();
        await stream.write(new Uint8Array(change === 'zeros' ? size : size - 1));
        await stream.close();
      }
      count++;
    }
    return count;
  }, change);

for (const worker of [true, false]) {
  const where = worker ? 'in a worker' : 'on the page';

  test(`an artifact is loaded ${where} and kept for the next time`, async () => {
    assert.equal((await answer({ worker })).text, 'one two three');
    assert.equal(await changeEntries(), 5); // 4 pieces and the tokenizer
    server.requests.length = 0;
    assert.equal((await answer({ worker })).text, 'one two three');
    assert.equal(shards().length, 0);
  });
}

for (const damage of ['zeros', 'a byte too few']) {
  test(`entries that hold ${damage} are fetched again`, async () => {
    await answer();
    await changeEntries(damage);
    server.requests.length = 0;
    assert.equal((await answer()).text, 'one two three');
    assert.ok(shards().length > 0);
    server.requests.length = 0;
    await answer();
    assert.equal(shards().length, 0);
  });
}

test('a connection that breaks off is taken up again', async () => {
  Object.assign(server.faults, { cut: 3_000_000, cuts: 2 });
  server.requests.length = 0;
  assert.equal((await answer({ cache: 'none' })).text, 'one two three');
  assert.ok(shards().some(({ range }) => /^bytes=[1-9]/.test(range ?? '')));
});

test('a page that is closed in mid-load goes on with what it has', async () => {
  const gone = page.evaluate(async () => {
    const { Tandem } = await import('/tandem/index.js');
    const controller = new AbortController();
    const onProgress = ({ done }) => done > 4e6 && controller.abort();
    await Tandem.load('/atlas', { signal: controller.signal, onProgress }).catch(() => {});
  });
  await gone;
  const before = await changeEntries();
  assert.ok(before >= 2 && before < 5, `${before} entries`);
  server.requests.length = 0;
  assert.equal((await answer()).text, 'one two three');
  assert.ok(shards().every(({ path, range }) => range || path.endsWith('1.safetensors')));
});

test('a full quota is one warning', async () => {
  const devtools = await context.newCDPSession(page);
  await devtools.send('Storage.overrideQuotaForOrigin', { origin: server.origin, quotaSize: 5e6 });
  const { text, warnings } = await answer();
  assert.equal(text, 'one two three');
  assert.equal(warnings.length, 1);
  assert.match(warnings[0], /not kept for the next time/);
});

test('bytes that are not those of the manifest are refused', async () => {
  server.faults.change = (path, bytes) =>
    path.endsWith('.safetensors') ? Buffer.from(bytes).fill(0, 100, 200) : bytes;
  const { name, code } = await answer();
  assert.deepEqual({ name, code }, { name: 'TandemError', code: 'hash_mismatch' });
});

test('a whole release is loaded', async () => {
  for (const options of [{}, { profile: true }, { mtp: 'off' }, { worker: false }]) {
    assert.equal((await answer({ release: '/release.json', ...options })).text, 'one two three');
  }
});

test('a worker that cannot start is an error', async () => {
  server.faults.status = { '/tandem/worker.js': 404 };
  const { code, message } = await answer();
  assert.deepEqual([code, /worker\.js/.test(message)], ['internal', true]);
});

test('a model has a worker of its own, which ends with it', async () => {
  await page.evaluate(async () => {
    const { Tandem } = await import('/tandem/index.js');
    window.model = await Tandem.load('/atlas');
  });
  const [worker] = page.workers();
  await Promise.all([worker.waitForEvent('close'), page.evaluate(() => window.model.dispose())]);

  const [next] = await Promise.all([
    page.waitForEvent('worker'),
    page.evaluate(() => import('/tandem/index.js').then((m) => m.Tandem.load('/no').catch(() => {}))),
  ]);
  if (page.workers().includes(next)) await next.waitForEvent('close');
  assert.deepEqual(page.workers(), []);
});

test('what cannot be sent to a worker is refused', async () => {
  const codes = await page.evaluate(async () => {
    const { Tandem } = await import('/tandem/index.js');
    const code = (promise) =>
      promise.then(
        () => null,
        (error) => error.code,
      );
    const model = await Tandem.load('/atlas');
    const codes = [
      await code(model.session().generate('one', { maxTokens: () => 1 }).result),
      await code(Tandem.load('/atlas', { context: Symbol() })),
    ];
    const { text } = await model.session().generate('one two').result;
    await model.dispose();
    return [...codes, text];
  });
  assert.deepEqual(codes, ['invalid_argument', 'invalid_argument', 'one two']);
});

test('a break in the loop over a worker ends the answer there', async () => {
  const result = await page.evaluate(async () => {
    const { Tandem } = await import('/tandem/index.js');
    const model = await Tandem.load('/atlas');
    const session = model.session();
    const first = session.generate('huge');
    for await (const piece of first) if (piece) break;
    const second = await session.generate('one two').result;
    const { stop } = await first.result;
    await model.dispose();
    const late = await session.generate('one').result.catch((error) => error.code);
    return { stop, second: second.text, late };
  });
  assert.deepEqual(result, { stop: 'aborted', second: 'one two', late: 'invalid_argument' });
});

test('the example of the README runs as it stands there', async () => {
  await page.goto(`${server.origin}/example.html`);
  await page.waitForFunction(() => document.querySelector('#answer').textContent.endsWith('?'));
  assert.equal(await page.textContent('#answer'), 'What is the capital of France?'); // the engine's echo
});
