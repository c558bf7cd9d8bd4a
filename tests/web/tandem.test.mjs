// The API over an engine without a GPU: what reaches the engine, and how answers begin and end.
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { pattern, pieces, sha256 } from './support/bytes.mjs';
import { installStorage } from './support/folder.mjs';
import { load } from './support/package.mjs';
import { serve } from './support/server.mjs';
import { calls } from './support/fake_engine/fake.mjs';

const { Tandem, TandemError } = await load('index.js');

const engine = new URL('support/fake_engine/', import.meta.url);
const tokenizer = new TextEncoder().encode('the tokenizer');
const shard = pattern(10_000);
const hashes = (bytes, size) => pieces('', bytes, size).map((range) => range.sha256);
const manifest = {
  views: { plain: {}, mtp: {} },
  tokenizer: {
    file: 'tokenizer.bin',
    bytes: tokenizer.length,
    sha256: sha256(tokenizer),
  },
  piece_bytes: 4096,
  shards: [{ file: 'shard', bytes: shard.length, pieces: hashes(shard, 4096) }],
};
const json = (value) => new TextEncoder().encode(JSON.stringify(value));

let server;
before(async () => {
  server = await serve();
});
after(() => server.close());
beforeEach(() => {
  installStorage();
  calls.length = 0;
  server.files.clear();
  server.files.set('/m/manifest.json', json(manifest));
  server.files.set('/m/tokenizer.bin', tokenizer);
  server.files.set('/m/shard', shard);
});

const open = (options) => Tandem.load(`${server.origin}/m`, { engine, worker: false, ...options });
async function all(generation) {
  const parts = [];
  for await (const piece of generation) parts.push(piece);
  return parts;
}

test('an artifact with an assistant is loaded into the module that drafts', async () => {
  const progress = [];
  const model = await open({ onProgress: (event) => progress.push(event) });
  assert.deepEqual(model.engine, {
    version: '0.1.0',
    target: 'mtp',
    profile: false,
  });
  assert.equal(calls[0].tokenizer, 'the tokenizer');
  assert.deepEqual(progress.at(-1), {
    phase: 'weights',
    done: 10_000,
    total: 10_000,
  });
  await model.dispose();
});

for (const [what, options, views, expected] of [
  ['mtp: off', { mtp: 'off' }, manifest.views, ['plain', false, 0]],
  ['no assistant', {}, { plain: {} }, ['plain', false, undefined]],
  ['one draft', { drafts: 1, mtp: 'on' }, manifest.views, ['mtp', false, 1]],
  ['profile', { profile: true, mtp: 'off' }, manifest.views, ['plain', true, 0]],
]) {
  test(`the module and its drafts for ${what}`, async () => {
    server.files.set('/m/manifest.json', json({ ...manifest, views }));
    await open(options);
    assert.deepEqual([calls[0].target, calls[0].profile, calls[0].options.drafts], expected);
  });
}

test('options of a load reach the engine as they are', async () => {
  const options = { context: 50, inputBound: 16, kv: 'f32', activations: 'int8', disabledTiers: ['dp4a'] };
  await open(options);
  for (const [name, value] of Object.entries(options)) assert.deepEqual(calls[0].options[name], value, name);
});

for (const [what, change, options, code] of [
  ['mtp: on without an assistant', { views: { plain: {} } }, { mtp: 'on' }, 'invalid_argument'],
  ['no views', { views: undefined }, {}, 'malformed_artifact'],
  ['no tokenizer', { tokenizer: undefined }, {}, 'malformed_artifact'],
  [
    'a tokenizer beyond all measure',
    { tokenizer: { ...manifest.tokenizer, bytes: 2 ** 40 } },
    {},
    'malformed_artifact',
  ],
  ['another tokenizer', { tokenizer: { ...manifest.tokenizer, sha256: 'b'.repeat(64) } }, {}, 'hash_mismatch'],
  ['another shard', { shards: [{ ...manifest.shards[0], pieces: ['b'.repeat(64)] }] }, {}, 'hash_mismatch'],
  ['a shard that is not there', { shards: [{ ...manifest.shards[0], file: 'x' }] }, {}, 'not_found'],
  ['a folder without engine', {}, { engine: new URL('nowhere/', import.meta.url) }, 'not_found'],
]) {
  test(`${what} is refused`, async () => {
    server.files.set('/m/manifest.json', json({ ...manifest, ...change }));
    await assert.rejects(open(options), (error) => error instanceof TandemError && error.code === code);
  });
}

test('a manifest that is no JSON or not there is refused', async () => {
  server.files.set('/m/manifest.json', new TextEncoder().encode('<html>'));
  await assert.rejects(open(), { code: 'malformed_json' });
  Object.assign(server.faults, { cut: 3, cuts: 1 });
  await assert.rejects(open(), { code: 'io', message: /manifest\.json of .* broke off/ });
  server.files.delete('/m/manifest.json');
  await assert.rejects(open(), {
    code: 'not_found',
    message: /manifest\.json does not exist/,
  });
});

test('a GPU, a device or an adapter of the caller needs the calling thread', async () => {
  for (const own of ['gpu', 'device', 'adapter']) {
    await assert.rejects(open({ worker: true, [own]: {} }), { code: 'invalid_argument' });
  }
  await open({ worker: undefined, device: { mine: true } });
  assert.deepEqual(calls[0].options.device, { mine: true });
});

test('a load ends where its signal says so', async () => {
  const controller = new AbortController();
  const onProgress = () => controller.abort();
  await assert.rejects(open({ signal: controller.signal, onProgress }), {
    name: 'AbortError',
  });
  await assert.rejects(open({ signal: AbortSignal.abort() }), {
    name: 'AbortError',
  });
});

test('a plan reads the manifest alone', async () => {
  server.requests.length = 0;
  const plan = await Tandem.plan(`${server.origin}/m`, {
    engine,
    worker: false,
    context: 50,
  });
  assert.equal(plan.context, 50);
  assert.deepEqual(
    server.requests.map((request) => request.path),
    ['/m/manifest.json'],
  );
});

test('pieces make the text, and the result has the rest', async () => {
  const model = await open({ mtp: 'off' });
  const generation = model.session().generate('one two three');
  assert.deepEqual(await all(generation), ['one ', 'two ', 'three']);
  const { text, stop, stats } = await generation.result;
  assert.deepEqual({ text, stop }, { text: 'one two three', stop: 'stop_id' });
  assert.equal(stats.rounds, 3);
  assert.deepEqual(generation.stats, stats);
});

test('a result needs no loop over its pieces, and pieces may be read late', async () => {
  const generation = (await open()).session().generate([{ role: 'user', content: 'one two' }]);
  assert.equal((await generation.result).text, 'one two');
  assert.equal((await all(generation)).join(''), 'one two');
});

test('options reach the engine in its own words', async () => {
  const session = (await open()).session();
  await session.generate('a', {
    maxTokens: 3,
    temperature: 0.5,
    topK: 4,
    seed: 2n ** 60n,
    stop: 'end',
    mtp: 'auto',
    minP: undefined,
  }).result;
  assert.deepEqual(calls.at(-1).start, {
    maxTokens: 3,
    sampling: { temperature: 0.5, topK: 4, seed: 2n ** 60n },
    stopStrings: ['end'],
    mtp: 'automatic',
  });
});

test('leaving the loop aborts, and the session goes on', async () => {
  const session = (await open()).session();
  const generation = session.generate('huge');
  for await (const piece of generation) if (piece) break;
  assert.equal((await generation.result).stop, 'aborted');
  assert.equal((await session.generate('one two').result).text, 'one two');
});

test('an abort before the first token, and twice, gives an empty answer', async () => {
  const session = (await open()).session();
  const aborted = session.generate('huge', { signal: AbortSignal.abort() });
  const generation = session.generate('huge');
  generation.abort();
  generation.abort();
  for (const { result } of [aborted, generation]) {
    assert.deepEqual(await result.then(({ text, stop }) => ({ text, stop })), {
      text: '',
      stop: 'aborted',
    });
  }
});

test('an answer may be asked for as soon as the one before was aborted', async () => {
  const session = (await open()).session();
  const first = session.generate('huge');
  await first[Symbol.asyncIterator]().next();
  first.abort();
  assert.equal((await session.generate('one two').result).text, 'one two');
  assert.equal((await first.result).stop, 'aborted');
});

test('a second answer beside one that is being written is refused', async () => {
  const session = (await open()).session();
  const first = session.generate('one two three four five');
  await assert.rejects(session.generate('six').result, {
    code: 'invalid_argument',
  });
  assert.equal((await first.result).text, 'one two three four five');
});

test('sessions answer side by side', async () => {
  const model = await open();
  const answers = ['one two three', 'four five six'].map((prompt) => model.session().generate(prompt));
  assert.deepEqual(await Promise.all(answers.map(async (answer) => (await answer.result).text)), [
    'one two three',
    'four five six',
  ]);
});

test('an error comes once, from the loop and from the result', async () => {
  const session = (await open({ mtp: 'off' })).session();
  const generation = session.generate('one lose two');
  await assert.rejects(all(generation), {
    name: 'TandemError',
    code: 'device_lost',
  });
  await assert.rejects(generation.result, { code: 'device_lost' });
  await assert.rejects(session.generate('').result, {
    code: 'invalid_argument',
  });
});

test('an error that nobody looks at is not unhandled', async () => {
  (await open()).session().generate('');
  await new Promise((resolve) => setTimeout(resolve, 20));
});

test('reset empties the timeline and ends an answer', async () => {
  const session = (await open()).session();
  const generation = session.generate('huge');
  await generation[Symbol.asyncIterator]().next();
  await session.reset();
  assert.equal((await generation.result).stop, 'aborted');
  assert.deepEqual(await session.ids(), []);
});

test('sessions take their buffers with them', async () => {
  const model = await open();
  const sessions = [model.session(), model.session()];
  for (const session of sessions) await session.generate('one').result;
  assert.equal((await model.census()).buffers, 12);
  await sessions[0].close();
  await assert.rejects(sessions[0].generate('one').result, {
    code: 'invalid_argument',
  });
  assert.equal((await model.census()).buffers, 11);
});

test('a model that was disposed of aborts its answers and takes no more', async () => {
  const model = await open();
  const session = model.session();
  const generation = session.generate('huge');
  await generation[Symbol.asyncIterator]().next();
  await model.dispose();
  await model.dispose();
  assert.equal((await generation.result).stop, 'aborted');
  for (const late of [session.generate('one').result, model.encode('one'), model.session().generate('one').result]) {
    await assert.rejects(late, {
      code: 'invalid_argument',
      message: /disposed/,
    });
  }
});
